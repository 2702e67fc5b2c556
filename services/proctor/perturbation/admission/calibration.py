"""Learning the gate's window for an encoder and a benchmark from labelled pairs, and using what was learned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import (
    ARTICLE_WINDOWS,
    BIN_WIDTH,
    DistanceBin,
    GateCalibration,
    PairCounts,
    WindowRates,
)
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.evidence.intervals import wilson
from proctor.perturbation.admission.gate import GATE_VERSION, TOO_FAR
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.admission.window import FloatArray, Goals, learn_window, roc
from proctor.perturbation.candidate import Candidate, seeded_rank
from proctor.perturbation.encoder import Encoder, Vectors, exact
from proctor.perturbation.remembering import RememberingEncoder
from proctor.text.normalise import normalise

_LEVEL: Final = 0.95
_WIDEST: Final = {"min_semantic_distance": 0.0, "max_semantic_distance": 2.0}
#: Similarities are computed for this many items at a time: 8 MiB for 4,000 items, whatever the benchmark's size.
_BLOCK_ITEMS: Final = 512
_PAIRS_AT_ONCE: Final = 1024


class LabelledPair(NamedTuple):
    """A pair of which it is known whether both ask the same."""

    item: Item
    candidate: Candidate
    equivalent: bool
    nearest: bool = False
    """Of a different pair: whether the other question is the nearest to the item's of all in the benchmark."""


class _Scored(NamedTuple):
    item_id: str
    equivalent: bool
    nearest: bool
    reason: str | None
    """Why the gate turns the pair away at any distance; None where only the distance is left to decide."""
    distance: float
    """Infinite where a text cannot be measured."""

    @property
    def gate_distance(self) -> float:
        """The distance from which on the whole gate admits the pair; infinite for never."""
        return self.distance if self.reason is None else math.inf


def calibrate(
    pairs: Sequence[LabelledPair],
    settings: PerturbationSection,
    *,
    benchmark: str,
    encoder: Encoder,
    goals: Goals | None = None,
    inputs: Mapping[str, str] | None = None,
) -> GateCalibration:
    """Learn the window on one half of the items, and report on the other half what it admits.

    The window starts at 0: being different enough to defeat recall is the surface's part. Its end is found by
    `window.learn_window`. The split is the suite's seed's; an item's pairs stay in one half, and items with and
    without equivalent pairs are split alike.

    Args:
        pairs: the labelled pairs; equivalent pairs may be few for an item and none for others.
        settings: the suite's section, for its surface limits and seed; its own window has no part in this.
        benchmark: the benchmark's name.
        encoder: what measures the distances.
        goals: the shares to reach; by default 99 % of equivalent and 0.1 % of different pairs.
        inputs: digests of what the pairs came from.

    Raises:
        BadInputError: with too few pairs, or labels that no window can satisfy.
        EncoderError: when distances cannot be measured.
    """
    goals = goals or Goals()
    encoder = RememberingEncoder(encoder)
    learning, held_out = _halves(_scored(pairs, settings, encoder), settings.seed)
    window = learn_window(
        [one.distance for one in learning if one.equivalent and one.reason is None],
        [one.distance for one in learning if not one.equivalent and one.reason is None],
        sum(not one.equivalent for one in learning),
        goals,
    )
    _check_held_out(held_out)
    return GateCalibration(
        benchmark=benchmark,
        encoder=encoder.name,
        encoder_digest=encoder.digest,
        encoder_fingerprint=encoder.fingerprint,
        gate_version=GATE_VERSION,
        seed=settings.seed,
        min_semantic_distance=0.0,
        max_semantic_distance=window.high,
        target_true_admits=goals.true_admits,
        target_false_admits=goals.false_admits,
        bounded_by=window.bounded_by,
        max_token_overlap=settings.max_token_overlap,
        max_containment=settings.max_containment,
        min_edit_distance=settings.min_edit_distance,
        learned_from=_counts(learning),
        held_out=_counts(held_out),
        rates=_rates("learned", 0.0, window.high, held_out),
        fixed_windows=tuple(_rates(name, low, high, held_out) for name, (low, high) in ARTICLE_WINDOWS.items()),
        rejections=_rejections(held_out, window.high),
        roc_gate=roc(*_by_label(held_out, [one.gate_distance for one in held_out])),
        roc_distance=roc(*_by_label(held_out, [one.distance for one in held_out])),
        histogram=_histogram(held_out),
        inputs=dict(inputs or {}),
    )


def with_window(
    settings: PerturbationSection, calibration: GateCalibration | None, *, benchmark: str, encoder: Encoder
) -> PerturbationSection:
    """The section with the window that its calibration learned; a section with a fixed gate is returned as it is.

    A calibrated gate is a fixed gate whose window was learned: what is returned has `gate` fixed, and keeps
    `calibration_path` to show where its window comes from.

    Raises:
        BadInputError: for a calibration of another encoder or benchmark, or where it is missing.
    """
    if settings.gate == "fixed":
        return settings
    name = settings.calibration_path or "calibration_path"
    if calibration is None:
        raise BadInputError("perturbation_config.gate is 'calibrated' and its calibration did not come with it")
    # A rough encoder decides as its exact one does, so what was learned for that is right for it.
    decides = exact(encoder)
    if calibration.encoder_fingerprint != decides.fingerprint:
        raise BadInputError(
            f"{name} was learned for the encoder {calibration.encoder} "
            f"({_short(calibration.encoder_fingerprint)}), and distances are measured with {decides.name} "
            f"({_short(decides.fingerprint)}): a window belongs to its encoder. Run `proctor variants calibrate` "
            "with this one, or set PROCTOR_ENCODER to the other"
        )
    if calibration.benchmark != benchmark:
        raise BadInputError(
            f"{name} was learned for the benchmark {calibration.benchmark!r}, and the suite's is {benchmark!r}: a "
            "window belongs to its benchmark. Run `proctor variants calibrate` for this one"
        )
    return settings.model_copy(
        update={
            "gate": "fixed",
            "min_semantic_distance": calibration.min_semantic_distance,
            "max_semantic_distance": calibration.max_semantic_distance,
        }
    )


def neighbours_needed(items: int, goals: Goals) -> int:
    """How many of the nearest different items to take of each item, so that half of the items give enough pairs.

    Raises:
        BadInputError: for a benchmark that has not that many.
    """
    half = items // 2
    needed = math.ceil(goals.different_needed / half) if half else items
    if needed >= items:
        raise BadInputError(
            f"the benchmark has {items} items, which do not make the {2 * goals.different_needed} different pairs "
            f"that admitting at most {100 * goals.false_admits:g} % takes: raise --false-admits"
        )
    return needed


def nearest_different(items: Sequence[Item], encoder: Encoder, count: int) -> list[LabelledPair]:
    """Each item paired with the questions of the `count` items nearest to it that ask something else.

    The hardest known-different pairs that a benchmark has. Items that ask the same text are not different and are
    passed over; the candidate keeps the item's own options, so that they do not give it away.

    Raises:
        EncoderError: when the questions cannot be embedded.
    """
    texts = [normalise(item.question) for item in items]
    vectors = encoder.encode([item.question for item in items])
    pairs = []
    for row, order in _by_similarity(vectors, count + max(Counter(texts).values(), default=0)):
        others = (other for other in order if texts[other] != texts[row])
        for rank, other in enumerate(islice(others, count)):
            candidate = Candidate(items[other].question, items[row].choices, "different", 1, {})
            pairs.append(LabelledPair(items[row], candidate, equivalent=False, nearest=rank == 0))
    return pairs


def _by_similarity(vectors: Vectors, count: int) -> Iterator[tuple[int, list[int]]]:
    """Every row with the `count` rows most similar to it, itself among them, the most similar first."""
    count = min(count, len(vectors))
    for start in range(0, len(vectors), _BLOCK_ITEMS):
        similarity = vectors[start : start + _BLOCK_ITEMS] @ vectors.T
        nearest = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        for offset, (columns, row) in enumerate(zip(nearest, similarity, strict=True)):
            # The position settles ties, so that the order is the same on every run.
            yield start + offset, columns[np.lexsort((columns, -row[columns]))].tolist()


def _scored(pairs: Sequence[LabelledPair], settings: PerturbationSection, encoder: Encoder) -> list[_Scored]:
    widest = settings.model_copy(update=_WIDEST)
    scored = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        part = pairs[start : start + _PAIRS_AT_ONCE]
        measured = measure([ItemPair(pair.item, pair.candidate) for pair in part], widest, encoder)
        for pair, result in zip(part, measured, strict=True):
            distance = math.inf if result.measurements is None else result.measurements.semantic_distance
            reason = None if result.rejection is None else result.rejection.reason
            scored.append(_Scored(pair.item.item_id, pair.equivalent, pair.nearest, reason, distance))
    return scored


def _halves(scored: Sequence[_Scored], seed: int) -> tuple[list[_Scored], list[_Scored]]:
    with_equivalents = {one.item_id for one in scored if one.equivalent}
    order = sorted(
        {one.item_id for one in scored},
        key=lambda item_id: (item_id not in with_equivalents, seeded_rank("calibration", seed, item_id)),
    )
    learning = set(order[::2])
    return [one for one in scored if one.item_id in learning], [one for one in scored if one.item_id not in learning]


def _check_held_out(held_out: Sequence[_Scored]) -> None:
    if len({one.equivalent for one in held_out}) < 2:
        raise BadInputError(
            "no equivalent, or no different, pair is left to hold out: pairs are split by item, so give pairs of "
            "several items"
        )


def _counts(scored: Sequence[_Scored]) -> PairCounts:
    kept = [one for one in scored if one.reason is None]
    return PairCounts(
        equivalent=sum(one.equivalent for one in scored),
        equivalent_kept=sum(one.equivalent for one in kept),
        different=sum(not one.equivalent for one in scored),
        different_kept=sum(not one.equivalent for one in kept),
    )


def _rates(name: str, low: float, high: float, scored: Sequence[_Scored]) -> WindowRates:
    def share(part: list[_Scored]) -> tuple[int, int, float]:
        return sum(low <= one.gate_distance <= high for one in part), len(part), _LEVEL

    return WindowRates(
        window=name,
        min_semantic_distance=low,
        max_semantic_distance=high,
        true_admits=wilson(*share([one for one in scored if one.equivalent])),
        false_admits=wilson(*share([one for one in scored if not one.equivalent])),
        nearest_admits=wilson(*share([one for one in scored if one.nearest])),
    )


def _rejections(scored: Sequence[_Scored], high: float) -> dict[str, int]:
    reasons = Counter(one.reason or TOO_FAR for one in scored if one.equivalent and (one.reason or one.distance > high))
    return dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))


def _by_label(scored: Sequence[_Scored], distances: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    values, equivalent = np.asarray(distances), np.asarray([one.equivalent for one in scored])
    return values[equivalent], values[~equivalent]


def _histogram(scored: Sequence[_Scored]) -> tuple[DistanceBin, ...]:
    measured = [one for one in scored if math.isfinite(one.distance)]
    # The small addend sees to it that 0.06 falls into the bin that it begins, whatever 0.06 / 0.02 is in binary.
    bins = Counter((math.floor(one.distance / BIN_WIDTH + 1e-6), one.equivalent) for one in measured)
    last = max((index for index, _ in bins), default=-1)
    return tuple(
        DistanceBin(low=round(index * BIN_WIDTH, 4), equivalent=bins[index, True], different=bins[index, False])
        for index in range(last + 1)
    )


def _short(digest: str) -> str:
    return digest[: len("sha256:") + 12]
