"""Whether the ledger's sums and the grades that were made ahead are those of the raw answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.chaos.findings import Findings
from tests.chaos.reading import Asked, asked, outcome
from tests.chaos.stores import Stage, Stores


def check_accounts(stores: Stores, audit: str, stage: Stage, n_accepted: int, findings: Findings) -> None:
    """All parts were laid down, of all trials; and what was recorded was added to the audit's spending once."""
    parts = stage.parts
    planned = sum(shard.n_trials for shard in stage.plan.values())
    expected = {"laid": parts.get("of", 0), "planned": n_accepted, "trials": n_accepted}
    if {key: parts.get(key, 0) for key in expected} != expected or planned != n_accepted:
        findings.broken(
            1, audit, f"{n_accepted} trials were accepted, {planned} are in the plan, its parts say {parts}"
        )
    if len({shard.position for shard in stage.plan.values()}) != len(stage.plan):
        findings.broken(2, audit, "two shards have the same position")
    spent = {"trials": 0, "input_tokens": 0, "output_tokens": 0}
    for shard in stage.done.keys() & stage.plan.keys():
        completions = stores.document(stage.done[shard])["completions"]
        spent["trials"] += len(completions)
        for unit in ("input_tokens", "output_tokens"):
            spent[unit] += sum(one[unit] or 0 for one in completions)
    if stage.spent != spent and stage.done:
        findings.broken(2, audit, f"the ledger counts as spent {stage.spent}, the answers {spent}")


def check_grades(
    stores: Stores,
    audit: str,
    stage: Stage,
    answered: Sequence[Mapping[str, Any]],
    accepted: Mapping[Asked, str],
    findings: Findings,
) -> None:
    """Each grade that was made ahead is the one that the raw answer deserves, and of the answer that counts."""
    done = {stage.plan[shard].digest: said for shard, said in stage.done.items() if shard in stage.plan}
    if strange := [shard for shard, (said, _) in stage.graded.items() if done.get(shard) != said]:
        findings.broken(2, audit, f"{len(strange)} shards were graded by answers that do not count, e.g. {strange[0]}")
    for row in answered:
        findings.shards += 1
        if row["grades"] is None:
            continue
        findings.graded_ahead += 1
        if stage.graded.get(row["shard"]) != (row["completions"], row["grades"]):
            findings.broken(2, audit, f"the manifest has grades of shard {row['shard']} that the ledger has not")
    for shard, (said, grades) in stage.graded.items():
        trials, completions = stores.document(shard)["trials"], stores.document(said)["completions"]
        found = stores.document(grades)
        expected = [
            outcome(completion, accepted[asked(trial)]) for trial, completion in zip(trials, completions, strict=True)
        ]
        if (found["shard"], found["completions"], found["outcomes"]) != (shard, said, expected):
            findings.broken(2, audit, f"the grades {grades} are not those of the raw answers {said}")
        if found["item_ids"] != [trial["item_id"] for trial in trials]:
            findings.broken(2, audit, f"the grades {grades} are of other items than the shard {shard}")
