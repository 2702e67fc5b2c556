"""How often the solvers of an answering check will be asked, and what it could find, for the plan of an audit."""

from __future__ import annotations

from typing import Final

import numpy as np

from proctor.domain.answering import AnsweringCheckSection, fewest_samples
from proctor.domain.suite import Suite
from proctor.evidence.answering.power import Found, found_share
from proctor.router.stages.check import CHECK

#: What is assumed of a solver and of the rewordings, to say what the check could find.
_ACCURACY: Final = 0.9
_BAD_SHARE: Final = 0.02
#: Rewordings that are simulated at most: more of them give nearly the same share.
_MOST_SIMULATED: Final = 1_500
_SEED: Final = 0


def answering_calls(suite: Suite, items: int) -> int:
    """Prompts of all solvers, if every item gets as many rewordings as it should; 0 where none are asked."""
    return CHECK.calls_of(suite, items)


def answering_notes(suite: Suite, items: int) -> tuple[str, ...]:
    """What the check comes to and could find, in sentences; none where the suite asks for none."""
    section = suite.perturbation
    if (check := section.answering_check) is None:
        return ()
    solvers = ", ".join(solver.model for solver in check.solvers)
    asked = (
        f"before the answers the solvers {solvers} are asked {answering_calls(suite, items):,} prompts, with at most "
        f"{check.decoding.max_tokens:,} tokens of answer each, which are not counted in the table"
    )
    found = _found(check, items, section.num_variants_per_item)
    power = (
        f"of rewordings to which a solver that is right {_percent(_ACCURACY)} of the time gives another answer as "
        f"often, {_percent(found.bad)} would be held by {check.samples} samples of each wording, if "
        f"{_percent(_BAD_SHARE)} are such (simulated; of the others {_percent(found.good)})"
    )
    alone = fewest_samples(check.alpha, 1)
    if alone is not None and check.samples >= alone:
        return (asked, power)
    needed = "no number of samples is enough" if alone is None else f"{alone} are the fewest"
    warning = f"{check.samples} samples hold nothing where only one solver is heard: {needed} at alpha {check.alpha:g}"
    return (asked, power, warning)


def _found(check: AnsweringCheckSection, items: int, variants: int) -> Found:
    simulated = max(1, min(items, _MOST_SIMULATED // variants))
    return found_share(
        samples=check.samples,
        solvers=len(check.solvers),
        items=simulated,
        variants=variants,
        accuracy=_ACCURACY,
        bad=_BAD_SHARE,
        alpha=check.alpha,
        rng=np.random.default_rng(_SEED),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
