"""The Contamination Score over the versions of a model: what on record may stand in one line, and what the line says.

A line joins the audits of one suite with one protocol digest, and nothing else: another digest is another measure. Of
each version (the weights' digest) the newest audit stands where the first one stood.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from proctor.domain.base import Frozen
from proctor.domain.channel_results import Verdict
from proctor.domain.decision import DecisionOutcome
from proctor.domain.measure import Bounded
from proctor.evidence.answers import FloatArray
from proctor.evidence.intervals import z_quantile
from proctor.evidence.level_shift import MIN_VERSIONS, LevelShift, error_correlation, level_shift
from proctor.evidence.multiplicity import holm
from proctor.runtime.records.baselines import Baseline
from proctor.runtime.records.item_counts import ItemColumns
from proctor.runtime.records.measures import StoredMeasure
from proctor.runtime.records.store import Records

#: Audits of a model that are looked at, versions of a line and lines that are shown: the newest of each.
MAX_AUDITS: Final = 500
MAX_VERSIONS: Final = 40
MAX_SERIES: Final = 12
#: A change is noted where the corrected p is at most this.
ALPHA: Final = 0.05


class TrendPoint(Frozen):
    """One version of a model in a line."""

    audit_id: str
    """Of the newest audit of these weights."""
    model_digest: str
    registry_version: str | None
    """The version that the decision was written on; None where it was not written."""
    decided_at: str
    verdict: Verdict
    outcome: DecisionOutcome
    score: Bounded
    """Contamination Score."""
    inflation: Bounded
    """D, in percentage points."""
    n_items: int
    above_floor: bool | None
    """Whether the score is above the floor's line; None without a floor, or a score."""

    @property
    def usable(self) -> bool:
        """Whether the figures can be compared."""
        return self.verdict is not Verdict.INVALID and None not in (self.inflation.low, self.inflation.high)

    @property
    def label(self) -> str:
        """What a person calls the version."""
        return self.registry_version or self.model_digest.removeprefix("sha256:")[:12]


class Floor(Frozen):
    """The audit of what was in production."""

    audit_id: str
    registered_name: str
    registered_version: str
    alias: str | None
    created_at: str
    score: Bounded
    line: float
    """Upper bound of the floor's score: a version's score up to it is no news."""


class Change(Frozen):
    """The most likely change of level in a line, and what chance makes of such a one."""

    before: str
    """Label of the last version of the old level."""
    after: str
    """Label of the first version of the new one."""
    number: int
    """Of that version in the line, from 1."""
    shift: Bounded
    """Change of D, in points, as if its place had been named beforehand."""
    p_value: float
    """Over all places in the line."""
    holm_p: float
    """Corrected over the model's lines that were tested."""
    noted: bool
    """Whether the corrected p is at most 0.05."""
    shared_items: bool
    """Whether what the versions' errors share was estimated from the items; they were taken as independent, else."""


class Series(Frozen):
    """A line: audits by one suite with one protocol digest."""

    suite_id: str
    protocol_digest: str
    benchmark_name: str
    level: float
    """Of all intervals."""
    points: tuple[TrendPoint, ...]
    """In the order in which the versions were first audited."""
    versions_not_shown: int
    floor: Floor | None
    change: Change | None
    note: str
    """What the line says of a change, in a sentence."""


class Trends(Frozen):
    """Everything on record of a model's versions."""

    model_id: str
    series: tuple[Series, ...]
    """The one that was audited last first."""
    series_not_shown: int
    audits_not_shown: bool
    """Whether there are more audits than were looked at."""
    tested: int
    """Lines over which the p-values are corrected."""


def read_trends(
    records: Records, model_id: str, *, suite_id: str | None = None, submitter: str | None = None, seed: int = 0
) -> Trends:
    """The lines of a model.

    Args:
        records: the record store.
        model_id: the model.
        suite_id: of one suite alone.
        submitter: whose audits may be seen; None for everyone's.
        seed: of the series that are drawn under the null hypothesis.
    """
    found = records.measures.of_model(model_id, limit=MAX_AUDITS + 1, suite_id=suite_id, submitter=submitter)
    lines: dict[tuple[str, str], list[StoredMeasure]] = {}
    for one in found[:MAX_AUDITS]:
        lines.setdefault((one.measure.suite_id, one.measure.protocol_digest), []).append(one)
    shown = list(lines.values())[:MAX_SERIES]
    versions = [_versions(line) for line in shown]
    kept = [line[-MAX_VERSIONS:] for line in versions]
    floors = _floors(records, model_id, submitter)
    series = [_series(line, len(whole) - len(line), floors) for line, whole in zip(kept, versions, strict=True)]
    long_enough = [one for one in series if sum(point.usable for point in one.points) >= MIN_VERSIONS]
    ids = [point.audit_id for one in long_enough for point in one.points if point.usable]
    items = records.measures.items(ids)
    return Trends(
        model_id=model_id,
        series=_with_changes(series, items, seed),
        series_not_shown=len(lines) - len(shown),
        audits_not_shown=len(found) > MAX_AUDITS,
        tested=len(long_enough),
    )


def _versions(newest_first: Sequence[StoredMeasure]) -> list[StoredMeasure]:
    """The newest audit of each version, in the order of their first ones."""
    newest: dict[str, StoredMeasure] = {}
    first: dict[str, str] = {}
    for one in newest_first:
        newest.setdefault(one.measure.model_digest, one)
        first[one.measure.model_digest] = one.decided_at
    # Audits that were decided in one second keep the order of the store.
    oldest_first = list(newest.values())
    oldest_first.reverse()
    return sorted(oldest_first, key=lambda one: first[one.measure.model_digest])


def _floors(records: Records, model_id: str, submitter: str | None) -> list[tuple[Baseline, StoredMeasure]]:
    """The floors whose audits were decided, the newest first."""
    baselines = records.baselines.newest(model_id=model_id, submitter=submitter)
    decided = records.measures.of_audits([one.audit_id for one in baselines])
    return [(one, decided[one.audit_id]) for one in baselines if one.audit_id in decided]


def _series(line: Sequence[StoredMeasure], left_out: int, floors: Sequence[tuple[Baseline, StoredMeasure]]) -> Series:
    measure = line[-1].measure
    floor = next(
        (
            _floor(baseline, found)
            for baseline, found in floors
            if found.measure.suite_id == measure.suite_id
            and found.measure.protocol_digest == measure.protocol_digest
            and found.measure.score.high is not None
        ),
        None,
    )
    return Series(
        suite_id=measure.suite_id,
        protocol_digest=measure.protocol_digest,
        benchmark_name=measure.benchmark_name,
        level=measure.level,
        points=tuple(_point(one, floor) for one in line),
        versions_not_shown=left_out,
        floor=floor,
        change=None,
        note="",
    )


def _floor(baseline: Baseline, found: StoredMeasure) -> Floor:
    assert found.measure.score.high is not None
    return Floor(
        audit_id=baseline.audit_id,
        registered_name=baseline.registered_name,
        registered_version=baseline.registered_version,
        alias=baseline.alias,
        created_at=baseline.created_at,
        score=found.measure.score,
        line=found.measure.score.high,
    )


def _point(one: StoredMeasure, floor: Floor | None) -> TrendPoint:
    measure = one.measure
    score = measure.score.value
    return TrendPoint(
        audit_id=one.audit_id,
        model_digest=measure.model_digest,
        registry_version=one.registry_version,
        decided_at=one.decided_at,
        verdict=measure.verdict,
        outcome=measure.outcome,
        score=measure.score,
        inflation=measure.inflation,
        n_items=measure.n_items,
        above_floor=None if floor is None or score is None else score > floor.line,
    )


def _with_changes(series: Sequence[Series], items: Mapping[str, ItemColumns], seed: int) -> tuple[Series, ...]:
    found = [_tested(one, items, seed) for one in series]
    adjusted = iter(holm([shift.p_value for shift, _ in found if shift is not None]))
    finished = []
    for one, (shift, shared) in zip(series, found, strict=True):
        if shift is None:
            finished.append(one.model_copy(update={"note": _untested(one)}))
            continue
        holm_p = next(adjusted)
        usable = [point for point in one.points if point.usable]
        change = Change(
            before=usable[shift.before - 1].label,
            after=usable[shift.before].label,
            number=one.points.index(usable[shift.before]) + 1,
            shift=Bounded(value=shift.shift, low=shift.low, high=shift.high),
            p_value=shift.p_value,
            holm_p=holm_p,
            noted=holm_p <= ALPHA,
            shared_items=shared,
        )
        finished.append(one.model_copy(update={"change": change, "note": _said(change)}))
    return tuple(finished)


def _tested(one: Series, items: Mapping[str, ItemColumns], seed: int) -> tuple[LevelShift | None, bool]:
    points = [point for point in one.points if point.usable]
    if len(points) < MIN_VERSIONS:
        return None, False
    values, errors = [], []
    for point in points:
        low, high = point.inflation.low, point.inflation.high
        assert low is not None
        assert high is not None
        # The interval's own middle: it is that of the estimate with its four pseudo-items.
        values.append((low + high) / 2)
        errors.append((high - low) / (2 * z_quantile(0.5 + one.level / 2)))
    if min(errors) <= 0:
        return None, False
    columns = [items[point.audit_id] for point in points if point.audit_id in items]
    correlation = error_correlation(_differences(columns)) if len(columns) == len(points) else None
    # Of the line and not of its place: what stands beside it changes nothing.
    number = zlib.crc32(f"{one.suite_id} {one.protocol_digest}".encode())
    shared = None if correlation is None else correlation.tobytes()
    return _shift(tuple(values), tuple(errors), shared, (seed, number), one.level), correlation is not None


@lru_cache(maxsize=256)
def _shift(
    values: tuple[float, ...],
    errors: tuple[float, ...],
    correlation: bytes | None,
    seed: tuple[int, int],
    level: float,
) -> LevelShift | None:
    # Drawing takes some milliseconds, and a page asks the same again and again.
    shape = (len(values), len(values))
    matrix = None if correlation is None else np.frombuffer(correlation, dtype=np.float64).reshape(shape)
    return level_shift(values, errors, rng=np.random.default_rng(seed), correlation=matrix, level=level)


def _differences(columns: Sequence[ItemColumns]) -> FloatArray:
    """D of each item that all versions were asked; shape (versions, items)."""
    if all(one.item_ids is columns[0].item_ids for one in columns):
        # As nearly always: the ids are one row, read once.
        return np.array([one.canonical - one.right / np.maximum(one.total, 1) for one in columns], dtype=np.float64)
    common = set(columns[0].item_ids).intersection(*(one.item_ids for one in columns[1:]))
    rows = []
    for one in columns:
        kept = np.fromiter((item in common for item in one.item_ids), dtype=bool, count=len(one.item_ids))
        rows.append((one.canonical - one.right / np.maximum(one.total, 1))[kept])
    return np.array(rows, dtype=np.float64).reshape(len(columns), len(common))


def _untested(one: Series) -> str:
    usable = sum(point.usable for point in one.points)
    if usable < MIN_VERSIONS:
        return f"A change is looked for from {MIN_VERSIONS} versions on; there {_are(usable)}."
    return "The versions cannot be told apart: they gave the same answers to every item."


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"


def _said(change: Change) -> str:
    p = f"p = {change.p_value:.2g} over all places, {change.holm_p:.2g} over all lines"
    if not change.noted:
        return f"No change of level is shown ({p})."
    value = change.shift.value
    assert value is not None
    way = "rose" if value > 0 else "fell"
    return (
        f"Between {change.before} and {change.after} the score inflation {way} by {abs(value):.1f} points ({p}). The "
        "place is the likeliest one, and the size of the largest of several changes is on the average overstated."
    )
