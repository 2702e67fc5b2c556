"""A prediction held against what a real cluster did.

The work that was seen is given to the model of KEDA and the HPA, which say how many replicas there should have been.
Two things cannot be known from outside: when KEDA polls and when the HPA looks. So every phase of both is played, and
what is predicted is a span.
"""

from __future__ import annotations

import bisect
import csv
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from autoscaling.hpa import SYNC_S, Hpa
from autoscaling.keda import Keda
from autoscaling.rules import Rules
from proctor.domain.errors import BadInputError

_PHASES: Final = 12


class Seen(NamedTuple):
    """A sample of a cluster, or of a prediction."""

    at_s: float
    replicas: int
    ready: int
    work: float


class Times(NamedTuple):
    """What a ramp is told by; None where it did not happen."""

    first_pod_s: float | None
    """From the first work to the first ready pod."""
    most_s: float | None
    """From the first work until the most pods that there were are ready."""
    zero_s: float | None
    """From the last work until no replica is wanted."""


class Span(NamedTuple):
    """A figure that was seen, and the least and the most that is predicted."""

    name: str
    seen: float | None
    least: float | None
    most: float | None

    def near(self, slack_s: float) -> bool:
        """Whether what was seen lies within the prediction, give or take so much."""
        if self.seen is None or self.least is None or self.most is None:
            return self.seen is self.least is self.most is None
        return self.least - slack_s <= self.seen <= self.most + slack_s


class Comparison(NamedTuple):
    """A prediction beside what was seen."""

    spans: tuple[Span, ...]
    mean_error: float
    """Replicas by which the best phase misses on average."""
    worst_error: float
    """The same for the worst phase."""
    best: tuple[Seen, ...]
    """The prediction of the best phase, at the times of the samples."""
    most: int


def read_observed(path: Path) -> list[Seen]:
    """Samples as `observe` writes them, or a JSON list of objects with the same fields.

    Raises:
        BadInputError: where it is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
        rows = json.loads(text) if text.lstrip().startswith("[") else list(csv.DictReader(text.splitlines()))
        seen = [Seen(float(r["at_s"]), int(r["replicas"]), int(r["ready"]), float(r["work"])) for r in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path}: {type(error).__name__} {error}: at_s, replicas, ready and work a line") from None
    if len(seen) < 2 or any(after.at_s <= before.at_s for before, after in pairwise(seen)):
        raise BadInputError(f"{path}: needs samples in the order of their times")
    return seen


def predict(rules: Rules, seen: Sequence[Seen], *, start_s: float, poll_s: float, sync_s: float) -> list[Seen]:
    """Replicas at the samples' times, had the controllers looked at these phases and pods taken so long to be ready."""
    keda, hpa = Keda(rules), Hpa(rules)
    times = [sample.at_s for sample in seen]
    replicas, first, last = seen[0].replicas, times[0], times[-1]
    born = [-start_s] * seen[0].ready + [first] * (replicas - seen[0].ready)
    looks = sorted(
        [(float(at_s), "poll") for at_s in np.arange(first + poll_s, last, rules.polling_s)]
        + [(float(at_s), "sync") for at_s in np.arange(first + sync_s, last, SYNC_S)]
    )
    found, due = list[Seen](), 0
    for sample in seen:
        while due < len(looks) and looks[due][0] <= sample.at_s:
            at_s, kind = looks[due]
            due += 1
            values = [seen[max(0, bisect.bisect_right(times, at_s) - 1)].work for _ in rules.triggers]
            if kind == "poll":
                replicas = keda.poll(at_s, replicas, values)
            elif (readings := keda.readings(replicas, values)) is not None:
                replicas = hpa.sync(at_s, replicas, sum(at_s >= one + start_s for one in born), readings)
            # The youngest leave first.
            born = born[:replicas] + [at_s] * (replicas - len(born))
        ready = sum(sample.at_s >= one + start_s for one in born)
        found.append(Seen(sample.at_s, replicas, ready, sample.work))
    return found


def times_of(samples: Sequence[Seen], most: int) -> Times:
    """The times of a ramp, of which the top is so many ready pods."""
    busy = [sample.at_s for sample in samples if sample.work > 0]
    if not busy:
        return Times(None, None, None)
    begin, end = busy[0], busy[-1]

    def first(fits: list[float], from_s: float) -> float | None:
        return fits[0] - from_s if fits else None

    return Times(
        first([one.at_s for one in samples if one.ready >= 1 and one.at_s >= begin], begin),
        first([one.at_s for one in samples if one.ready >= most and one.at_s >= begin], begin),
        first([one.at_s for one in samples if one.replicas == 0 and one.at_s > end], end),
    )


def compare(rules: Rules, seen: Sequence[Seen], *, start_s: float) -> Comparison:
    """Play every phase, and say what came of it beside what was seen."""
    most = max(sample.ready for sample in seen)
    runs = [
        predict(rules, seen, start_s=start_s, poll_s=poll_s, sync_s=sync_s)
        for poll_s in np.arange(_PHASES) * rules.polling_s / _PHASES
        for sync_s in np.arange(_PHASES) * SYNC_S / _PHASES
    ]
    # By time: samples need not be evenly apart.
    weights = np.diff([sample.at_s for sample in seen], append=seen[-1].at_s)
    replicas = np.array([sample.replicas for sample in seen])
    errors = [
        float(np.average(np.abs(np.array([one.replicas for one in run]) - replicas), weights=weights)) for run in runs
    ]
    best = runs[int(np.argmin(errors))]
    predicted = [times_of(run, most) for run in runs]
    spans = []
    for name, was, all_of in zip(
        ("first pod ready", f"{most} pods ready", "back to 0"),
        times_of(seen, most),
        zip(*predicted, strict=True),
        strict=True,
    ):
        known = [one for one in all_of if one is not None]
        spans.append(Span(name, was, min(known, default=None), max(known, default=None)))
    return Comparison(tuple(spans), min(errors), max(errors), tuple(best), most)
