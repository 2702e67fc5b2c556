"""What a table of router settings means, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.noise import HypothesisTest, NoiseModel, NoiseSetting
from proctor.evidence.written_numbers import counted, p_text

#: More names than this make a sentence unreadable; the table has them all.
_MAX_NAMED = 12


def conclusion(
    settings: Sequence[NoiseSetting],
    significant: Sequence[NoiseSetting],
    hypotheses: Sequence[HypothesisTest],
    models: Sequence[NoiseModel],
    without_right_answers: int,
    alpha: float,
) -> str:
    """How many gains are positive, how many survive correction, and what that does not show."""
    valid = [setting for setting in settings if not setting.invalid]
    if not valid:
        return "Every setting is invalid: most of its answers hold no option. Nothing is shown."
    positive = sum(setting.violation for setting in valid)
    sentences = [
        f"{positive} of {counted(len(valid), 'setting')} {_be(positive)} above the clean baseline, "
        f"and {len(significant)} of these {_survive(len(significant))} Holm over the whole table at {alpha:g}"
        + (f": {_named(significant)}." if significant else ".")
    ]
    if positive > len(significant):
        sentences.append("After that correction the other gains cannot be told from chance.")
    own = [model.model for model in models if model.holm_min_p is not None and model.holm_min_p < alpha]
    sentences.append(
        f"Corrected within each model alone, {len(own)} of {counted(len(models), 'model')} "
        f"{'has' if len(own) == 1 else 'have'} a significant gain"
        + (f" ({', '.join(own[:_MAX_NAMED])}{', …' if len(own) > _MAX_NAMED else ''})." if own else ".")
    )
    for test in hypotheses:
        p = "not testable" if test.p_value is None else p_text(test.p_value)
        sentences.append(f"{test.name} ({p}): {test.reading}")
    invalid = len(settings) - len(valid)
    if invalid:
        sentences.append(
            f"{counted(invalid, 'setting')} {_be(invalid)} invalid (most answers hold no option) and left out."
        )
    if without_right_answers:
        sentences.append(
            f"{counted(without_right_answers, 'setting')} lost every right answer, which guessing would not: the "
            "answers were probably not read or not given. The table does not say (a column `invalid` would), so they "
            "count as measured here, and they weigh on the means, the slopes, H2 and H3."
        )
    sentences.append(
        "A gain that survives says that noise helped, not why; a better explanation than memory may exist."
    )
    return " ".join(sentences)


def _named(settings: Sequence[NoiseSetting]) -> str:
    names = [f"{setting.model} at r = {setting.router_count}" for setting in settings[:_MAX_NAMED]]
    more = len(settings) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _survive(count: int) -> str:
    return "survives" if count == 1 else "survive"
