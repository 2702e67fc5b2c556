"""Figures of audits for tests, put on record as the scorer does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.domain.canonical import bytes_digest
from proctor.domain.channel_results import Verdict
from proctor.domain.decision import DecisionOutcome
from proctor.domain.measure import Bounded, ItemCounts, Measure, Measured
from proctor.runtime.records.store import Records
from tests.record_samples import an_event


def digest_of(text: str) -> str:
    """A digest that is the same for the same text."""
    return bytes_digest(text.encode())


def figure(value: float, half: float) -> Bounded:
    """A figure with an even interval."""
    return Bounded(value=value, low=value - half, high=value + half)


def a_measure(weights: str = "v1", points: float = 1.0, *, half: float = 1.0, **other: Any) -> Measure:
    """The figures of an audit, with so many points of inflation."""
    values: dict[str, Any] = {
        "suite_id": "suite",
        "model_id": "org/model",
        "model_digest": digest_of(weights),
        "benchmark_name": "facts",
        "benchmark_digest": digest_of("facts"),
        "content_digest": digest_of("facts.jsonl"),
        "protocol_digest": digest_of("protocol"),
        "verdict": Verdict.INCONCLUSIVE,
        "outcome": DecisionOutcome.REVIEW,
        "score": figure(points / 100, half / 100),
        "inflation": figure(points, half),
        "level": 0.95,
        "n_items": 4,
        **other,
    }
    return Measure(**values)


def counts(canonical: Sequence[int], right: Sequence[int], total: int = 3) -> ItemCounts:
    """What a model answered to items i000, i001, … that all have so many rewordings."""
    ids = tuple(f"i{number:03}" for number in range(len(canonical)))
    return ItemCounts(ids, tuple(canonical), tuple(right), (total,) * len(ids))


def decide(records: Records, measure: Measure, items: ItemCounts | None = None, *, submitter: str | None = None) -> str:
    """Have an audit decided with these figures; its id."""
    inputs = {} if submitter is None else {"submitter": submitter}
    audit_id = records.create_audit("subject", "{}", inputs).audit_id
    found = items if items is not None else counts((1, 1, 0, 0), (3, 1, 0, 1))
    assert records.decide(audit_id, an_event(audit_id), measured=Measured(measure, found))
    return audit_id
