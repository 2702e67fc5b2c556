"""How many items does it take?

Two questions to ask before anything runs. To compare two models: how many items show a difference of five points, if
the models disagree on a fifth of the items? To audit one: with what chance is a clean model approved, and what is the
smallest share of leaked items that is found? The second depends on how a model's answers vary from wording to wording,
so it is answered for families of models.
"""

import numpy as np

from proctor import Suite, plan_comparison
from proctor.evidence.planning.approval import approval_chance, detectable_share
from proctor.evidence.planning.families import FAMILIES
from proctor.evidence.planning.simulated_audits import Limits

plan = plan_comparison(0.20, n=None, difference=0.05)
smallest = plan_comparison(0.20, n=200, difference=None).mde
print(f"at 20 % discordance five points take {plan.items_needed} items; 200 items show {100 * smallest:.1f} points")

suite = Suite.model_validate(
    {
        "audit_suite_id": "planned",
        "model_config": {
            "model_id": "my-org/my-model",
            "model_version": "sha256:" + 64 * "0",
            "endpoint": "http://127.0.0.1:8000/v1",
        },
        "dataset_config": {"benchmark_name": "gsm8k"},
    }
)
limits, rng = Limits.of(suite), np.random.default_rng(0)
for name in ("consistent", "guessers", "beta_1_1"):
    for items in (100, 500, 1000):
        approved = approval_chance(FAMILIES[name], items, 3, limits, rng)
        found = detectable_share(FAMILIES[name], items, 3, rng)
        share = "none" if found is None else f"{100 * found:.0f} %"
        print(f"{name}, {items} items: a clean model is approved with {100 * approved:.0f} %, leaks found from {share}")

# Prints:
# at 20 % discordance five points take 626 items; 200 items show 8.8 points
# consistent, 100 items: a clean model is approved with 93 %, leaks found from 6 %
# consistent, 500 items: a clean model is approved with 100 %, leaks found from 2 %
# consistent, 1000 items: a clean model is approved with 100 %, leaks found from 1 %
# guessers, 100 items: a clean model is approved with 41 %, leaks found from 11 %
# guessers, 500 items: a clean model is approved with 98 %, leaks found from 5 %
# guessers, 1000 items: a clean model is approved with 100 %, leaks found from 3 %
# beta_1_1, 100 items: a clean model is approved with 18 %, leaks found from 27 %
# beta_1_1, 500 items: a clean model is approved with 67 %, leaks found from 11 %
# beta_1_1, 1000 items: a clean model is approved with 92 %, leaks found from 8 %
