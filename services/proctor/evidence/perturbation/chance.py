"""Whether a model answers a benchmark better than chance does: otherwise there is no score that memory could inflate.

By the interval of the canonical accuracy, whose lower bound has to be above the chance of a guess. Where there are no
options that chance is 0, and Wilson's bound is above 0 from one right answer on, which tells nothing: there the
Contamination Score must have an interval as well, which it has where the mean that it divides by, canonical accuracy
after the four pseudo-items, differs from 0 (Fieller). From seven items on that takes two right answers.
"""

from __future__ import annotations

from proctor.domain.evidence import Estimate
from proctor.evidence.written_numbers import counted, percent

#: The code of the reason.
CODE = "accuracy_too_low"


def not_above_chance(n: int, canonical: Estimate, score: Estimate, chance: float | None) -> str | None:
    """Why a model cannot do a benchmark, as a sentence; None where it can.

    Args:
        n: items.
        canonical: its accuracy on the canonical wording.
        score: its Contamination Score.
        chance: that a guess is right; None where it is not known, as of open questions, and then 0.
    """
    guessed = chance or 0.0
    above = canonical.low is not None and canonical.low > guessed
    if above and score.value is not None and score.low is not None and score.high is not None:
        return None
    return (
        f"The model cannot do this benchmark: on {counted(n, 'item')} {percent(canonical.value or 0.0)} of its "
        f"canonical answers are right{_against(canonical, guessed)}. Nothing that memory could have added can be told "
        "from that; audit with a benchmark that the model can answer, or look at the prompt template, the extractor "
        "and the token limit."
    )


def _against(canonical: Estimate, chance: float) -> str:
    if canonical.low is None or canonical.high is None or canonical.low > chance or not chance:
        return ", which is not clearly above 0"
    return (
        f" ({100 * canonical.level:g} % interval {percent(canonical.low)} to {percent(canonical.high)}), which is not "
        f"above the {percent(chance)} that guessing gives"
    )
