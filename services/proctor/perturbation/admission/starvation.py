"""When too few items get a variant: count why, and say what would mend it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import ANOTHER_ITEM, EMPTY, SURFACE_TOO_CLOSE, TOO_CLOSE, TOO_FAR, UNCHANGED
from proctor.perturbation.library.store import Outcome
from proctor.perturbation.strategies.model.replies import ANSWERED, MODEL_FAILED, REFUSED, REPEATED, TRUNCATED
from proctor.text.invariants import CHECKS

#: The suggested window holds the candidates between these quantiles, so that a few outliers do not widen it.
_LOW_QUANTILE: Final = 0.05
_HIGH_QUANTILE: Final = 0.95
_NOTHING_TO_REWORD: Final = {
    "no_options": "these items have no options: name a strategy that rewords the question",
    "no_wordings": "the benchmark's wordings do not cover these items: use 'imported' with rewordings_path",
    "no_rewording": "the file of rewordings does not cover these items: check item_id, index and original in its rows",
    "no_labels": "these items could be labelled in no other way without confusion: use option_shuffle",
    **dict.fromkeys(
        ("no_synonym", "no_clause", "no_names", "no_numbers", "no_gap", "no_long_word", "no_layout"),
        "these items give this strategy no place to change: name another one",
    ),
}

_OF_THE_MODEL: Final = {
    REFUSED: "The model {model} refused most of what it was asked: name another paraphrase_model.",
    ANSWERED: "Most replies of {model} give the answer away: name a paraphrase_model that keeps to instructions.",
    EMPTY: "Most replies of {model} hold no wording: see that paraphraser.chat_template ({chat_template}) suits it.",
    TRUNCATED: "Most replies of {model} were cut off: raise max_tokens in paraphraser.decoding (now {max_tokens}).",
    UNCHANGED: (
        "Most replies of {model} are the question that it was given: raise temperature in paraphraser.decoding (now "
        "{temperature:g}), or name another paraphrase_model."
    ),
}


def check_yield(outcomes: Sequence[Outcome], settings: PerturbationSection, strategy: str) -> None:
    """Stop a build that would audit too little.

    Raises:
        BadInputError: when the share of items with a variant is below `min_yield`, or there is none at all.
    """
    total = len(outcomes)
    served = sum(bool(outcome.variants) for outcome in outcomes)
    if served and served >= settings.min_yield * total:
        return
    reasons = Counter(rejection.reason for outcome in outcomes for rejection in outcome.rejections)
    counted = ", ".join(f"{count} {reason}" for reason, count in _by_count(reasons)) or "no candidates at all"
    raise BadInputError(
        f"only {served} of {total} items got a variant from {strategy!r}, and min_yield is {settings.min_yield:g}. "
        f"Rejected: {counted}. {_mend(outcomes, settings, reasons)}{_bolder(settings, reasons)}"
    )


def _by_count(reasons: Counter[str]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))


def _mend(outcomes: Sequence[Outcome], settings: PerturbationSection, reasons: Counter[str]) -> str:
    if not reasons:
        return "Lower min_yield, or give more rewordings."
    outside = reasons[TOO_CLOSE] + reasons[TOO_FAR]
    # What repeats a wording was turned away for that wording's reason, which is counted already.
    apart = (TOO_CLOSE, TOO_FAR, REPEATED)
    others = Counter({reason: count for reason, count in reasons.items() if reason not in apart})
    if outside and outside >= max(others.values(), default=0):
        return _window(outcomes, settings, reasons)
    reason = _by_count(others)[0][0]
    if settings.asks_a_model and (mend := _of_the_model(outcomes, settings, reason)) is not None:
        return mend
    if reason in _NOTHING_TO_REWORD:
        return _NOTHING_TO_REWORD[reason].capitalize() + "."
    if reason == SURFACE_TOO_CLOSE:
        return (
            "The rewordings look nearly like the originals: reword more, or ease the suite's surface limits "
            f"(max_token_overlap {settings.max_token_overlap:g}, max_containment {settings.max_containment:g}, "
            f"min_edit_distance {settings.min_edit_distance:g})."
        )
    if reason == ANOTHER_ITEM:
        return (
            f"Most rewordings are not nearer to their own item by {settings.min_margin:g} than to another one of the "
            "benchmark: reword less freely, or learn the margin from rewordings like these that somebody has read, "
            "with `proctor variants calibrate`."
        )
    if reason in CHECKS:
        return (
            f"Most rewordings do not keep the item's {reason}, so they ask something else: mend the rewordings; no "
            "setting of the gate lets this through."
        )
    return f"Most rewordings are of no use ({reason}): mend the rewordings."


def _bolder(settings: PerturbationSection, reasons: Counter[str]) -> str:
    """What to do besides, where the model hardly says anything new."""
    if not reasons[REPEATED] or reasons[REPEATED] < max(reasons.values()):
        return ""
    return (
        f" {settings.paraphrase_model} keeps giving the same wordings: raise temperature in paraphraser.decoding (now "
        f"{settings.paraphraser.decoding.temperature:g}), or ask for fewer than {settings.num_variants_per_item} "
        "variants an item."
    )


def _of_the_model(outcomes: Sequence[Outcome], settings: PerturbationSection, reason: str) -> str | None:
    """The mend where the rewording model is at fault; None where it is not."""
    if reason == MODEL_FAILED:
        first = next(one.detail for outcome in outcomes for one in outcome.rejections if one.reason == MODEL_FAILED)
        return (
            f"Most calls of {settings.paraphrase_model} failed, the first because {first}. See that its endpoint "
            "answers, and start again: what failed is not kept."
        )
    decoding = settings.paraphraser.decoding
    if reason in _OF_THE_MODEL:
        return _OF_THE_MODEL[reason].format(
            model=settings.paraphrase_model,
            chat_template=settings.paraphraser.chat_template,
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
        )
    if reason in CHECKS:
        return (
            f"Most rewordings of {settings.paraphrase_model} do not keep the item's {reason}, so they ask something "
            "else: name another paraphrase_model; no setting of the gate lets this through."
        )
    return None


def _window(outcomes: Sequence[Outcome], settings: PerturbationSection, reasons: Counter[str]) -> str:
    measured = sorted(distance for outcome in outcomes for distance in outcome.distances)
    low = math.floor(100 * _quantile(measured, _LOW_QUANTILE)) / 100
    high = math.ceil(100 * _quantile(measured, _HIGH_QUANTILE)) / 100
    high = max(high, round(low + 0.01, 2))
    would = sum(any(low <= distance <= high for distance in outcome.distances) for outcome in outcomes)
    return (
        f"{reasons[TOO_CLOSE]} fell below the window {settings.min_semantic_distance:g} to "
        f"{settings.max_semantic_distance:g} and {reasons[TOO_FAR]} above it (median distance "
        f"{_quantile(measured, 0.5):.3f}). A window belongs to an encoder and a benchmark: with "
        f"min_semantic_distance {low:g} and max_semantic_distance {high:g}, {would} of {len(outcomes)} items would "
        f"get a variant. {_offer(settings)}"
    )


def _offer(settings: PerturbationSection) -> str:
    if settings.calibration_path is not None:
        return (
            f"This window is the one of {settings.calibration_path}, learned from other rewordings than these: learn "
            "one from rewordings like these that somebody has read, with `proctor variants calibrate`."
        )
    return (
        "Better than to widen it by hand: `proctor variants calibrate` learns the window from rewordings that "
        'somebody has read; a suite then says "gate": "calibrated" and names the file in calibration_path.'
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile: a distance that was really measured."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
