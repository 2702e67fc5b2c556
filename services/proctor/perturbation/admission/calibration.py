"""Learning the gate's window and margin for an encoder and a benchmark from labelled pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import (
    ARTICLE_WINDOWS,
    BIN_WIDTH,
    Crowding,
    DistanceBin,
    GateCalibration,
    NearItems,
    PairCounts,
    WindowRates,
)
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import ANOTHER_ITEM, GATE_VERSION, TOO_FAR, rounded_distance
from proctor.perturbation.admission.learned import with_window
from proctor.perturbation.admission.pairs import (
    ChangedQuestion,
    LabelledPair,
    nearest_different,
    neighbours_needed,
    one_of_each,
)
from proctor.perturbation.admission.scoring import Gate, Scored, Setting, changed_admits, put_to_nearest, scored, share
from proctor.perturbation.admission.window import FloatArray, Goals, LearnedWindow, learn_window, roc
from proctor.perturbation.candidate import seeded_rank
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.remembering import RememberingEncoder
from proctor.text.same_question import asked

__all__ = [
    "ChangedQuestion",
    "LabelledPair",
    "calibrate",
    "nearest_different",
    "neighbours_needed",
    "with_window",
]

#: Of pairs of items that are nearer to each other than rewordings are. The document is read by people.
_PAIRS_LISTED: Final = 50


def calibrate(
    pairs: Sequence[LabelledPair],
    settings: PerturbationSection,
    *,
    benchmark: str,
    encoder: Encoder,
    items: Sequence[Item] | None = None,
    changed: Sequence[ChangedQuestion] | None = None,
    goals: Goals | None = None,
    inputs: Mapping[str, str] | None = None,
) -> GateCalibration:
    """Learn the window and the margin on one half of the items, and report on the other half what they admit.

    The window starts at 0: being different enough to defeat recall is the surface's part. Its end and the margin are
    found by `window.learn_window`. The split is the suite's seed's; an item's pairs stay in one half, and items with
    and without equivalent pairs are split alike. Items that ask the same with the same options are one item, and a pair
    that is given twice is one pair.

    Args:
        pairs: the labelled pairs; equivalent pairs may be few for an item and none for others.
        settings: the suite's section, for its surface limits and seed; its own window has no part in this.
        benchmark: the benchmark's name.
        encoder: what measures the distances.
        items: the whole benchmark, to whose questions the margin is kept; by default the items of the pairs.
        changed: questions that were changed on purpose. What is admitted of them is reported; they do not teach.
        goals: the shares to reach; by default 99 % of equivalent and 0.1 % of different pairs.
        inputs: digests of what the pairs came from.

    Raises:
        BadInputError: with too few pairs, or labels that no window can satisfy.
        EncoderError: when distances cannot be measured.
    """
    goals = goals or Goals()
    encoder = RememberingEncoder(encoder)
    items = list({pair.item.item_id: pair.item for pair in pairs}.values()) if items is None else items
    others = OtherItems((item.question for item in items), encoder.encode)
    setting = Setting(settings, encoder, others)
    pairs = one_of_each(pairs)
    learning, held_out = _halves(scored(pairs, setting), settings.seed)
    window = learn_window(
        [one.placed for one in learning if one.equivalent and one.reason is None],
        [one.placed for one in learning if not one.equivalent and one.reason is None],
        sum(not one.equivalent for one in learning),
        goals,
    )
    _check_held_out(held_out)
    learned = Gate(0.0, window.high, window.margin)
    held_out_ids = {one.item_id for one in held_out}
    taken_for_others = put_to_nearest([pair for pair in pairs if pair.item.item_id in held_out_ids], items, setting)
    admitted = [one.gate_distance(window.margin) for one in held_out]
    return GateCalibration(
        benchmark=benchmark,
        encoder=encoder.name,
        encoder_digest=encoder.digest,
        encoder_fingerprint=encoder.fingerprint,
        gate_version=GATE_VERSION,
        seed=settings.seed,
        min_semantic_distance=0.0,
        max_semantic_distance=window.high,
        min_margin=window.margin,
        questions=len(others.questions),
        questions_digest=others.digest,
        target_true_admits=goals.true_admits,
        target_false_admits=goals.false_admits,
        bounded_by=window.bounded_by,
        max_token_overlap=settings.max_token_overlap,
        max_containment=settings.max_containment,
        min_edit_distance=settings.min_edit_distance,
        learned_from=_counts(learning),
        held_out=_counts(held_out),
        rates=_rates("learned", learned, held_out),
        fixed_windows=tuple(_rates(name, Gate(*ends), held_out) for name, ends in ARTICLE_WINDOWS.items()),
        rejections=_rejections(held_out, window),
        reworded_admits=share(taken_for_others, learned),
        changed=None if changed is None else changed_admits(changed, setting, learned),
        crowding=_crowding(items, others, learning, window.margin),
        roc_gate=roc(*_by_label(held_out, admitted)),
        roc_distance=roc(*_by_label(held_out, [one.distance for one in held_out])),
        histogram=_histogram(held_out),
        inputs=dict(inputs or {}),
    )


def _crowding(items: Sequence[Item], others: OtherItems, learning: Sequence[Scored], margin: float) -> Crowding:
    near = sorted(one.distance for one in learning if one.equivalent and one.reason is None)
    below = near[len(near) // 2]
    by_question: dict[str, list[str]] = {}
    for item in items:
        by_question.setdefault(asked(item.question), []).append(item.item_id)
    named = [by_question[asked(question)] for question in others.questions]
    pairs = others.near_pairs(max(below, margin))
    crowded = {row for distance, *rows in pairs if distance < below for row in rows}
    indistinct = {row for distance, *rows in pairs if distance < margin for row in rows}
    listed = [pair for pair in pairs if pair[0] < below]
    return Crowding(
        below=below,
        items=sum(len(named[row]) for row in crowded),
        indistinct=sum(len(named[row]) for row in indistinct),
        pairs=len(listed),
        nearest=tuple(
            NearItems(item=named[left][0], other=named[right][0], distance=rounded_distance(distance))
            for distance, left, right in listed[:_PAIRS_LISTED]
        ),
    )


def _halves(scored: Sequence[Scored], seed: int) -> tuple[list[Scored], list[Scored]]:
    with_equivalents = {one.item_id for one in scored if one.equivalent}
    order = sorted(
        {one.item_id for one in scored},
        key=lambda item_id: (item_id not in with_equivalents, seeded_rank("calibration", seed, item_id)),
    )
    learning = set(order[::2])
    return [one for one in scored if one.item_id in learning], [one for one in scored if one.item_id not in learning]


def _check_held_out(held_out: Sequence[Scored]) -> None:
    if len({one.equivalent for one in held_out}) < 2:
        raise BadInputError(
            "no equivalent, or no different, pair is left to hold out: pairs are split by item, so give pairs of "
            "several items"
        )


def _counts(scored: Sequence[Scored]) -> PairCounts:
    kept = [one for one in scored if one.reason is None]
    return PairCounts(
        equivalent=sum(one.equivalent for one in scored),
        equivalent_kept=sum(one.equivalent for one in kept),
        different=sum(not one.equivalent for one in scored),
        different_kept=sum(not one.equivalent for one in kept),
    )


def _rates(name: str, gate: Gate, scored: Sequence[Scored]) -> WindowRates:
    return WindowRates(
        window=name,
        min_semantic_distance=gate.low,
        max_semantic_distance=gate.high,
        min_margin=gate.margin,
        true_admits=share([one for one in scored if one.equivalent], gate),
        false_admits=share([one for one in scored if not one.equivalent], gate),
        nearest_admits=share([one for one in scored if one.nearest], gate),
    )


def _rejections(scored: Sequence[Scored], window: LearnedWindow) -> dict[str, int]:
    reasons = Counter(
        one.reason or (TOO_FAR if one.distance > window.high else ANOTHER_ITEM)
        for one in scored
        if one.equivalent and (one.reason or not window.admits(one.placed))
    )
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def _by_label(scored: Sequence[Scored], distances: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    values, equivalent = np.asarray(distances), np.asarray([one.equivalent for one in scored])
    return values[equivalent], values[~equivalent]


def _histogram(scored: Sequence[Scored]) -> tuple[DistanceBin, ...]:
    measured = [one for one in scored if math.isfinite(one.distance)]
    # The small addend sees to it that 0.06 falls into the bin that it begins, whatever 0.06 / 0.02 is in binary.
    bins = Counter((math.floor(one.distance / BIN_WIDTH + 1e-6), one.equivalent) for one in measured)
    last = max((index for index, _ in bins), default=-1)
    return tuple(
        DistanceBin(low=round(index * BIN_WIDTH, 4), equivalent=bins[index, True], different=bins[index, False])
        for index in range(last + 1)
    )
