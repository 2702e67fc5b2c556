"""What is kept of a report for comparing it with those of other audits. Pure."""

from __future__ import annotations

from proctor.domain.measure import Bounded, ItemCounts, Measure, Measured, benchmark_digest
from proctor.scorer.report.document import Report


def measured(report: Report) -> Measured | None:
    """The figures of an audit and its items; None where rewordings were not compared."""
    found = report.evidence.perturbation
    if found is None:
        return None
    items = sorted(found.items, key=lambda item: item.item_id)
    return Measured(
        Measure(
            suite_id=report.suite.audit_suite_id,
            model_id=report.subject.model_id,
            model_digest=report.subject.digest,
            benchmark_name=report.suite.dataset.benchmark_name,
            benchmark_digest=benchmark_digest(report.card),
            content_digest=report.card.task_set.get("content_digest"),
            protocol_digest=report.protocol_digest,
            verdict=found.verdict,
            outcome=report.decision.outcome,
            score=Bounded.of(found.contamination_score),
            inflation=Bounded.of(found.score_inflation),
            level=found.score_inflation.level,
            n_items=found.n_items,
        ),
        ItemCounts(
            tuple(item.item_id for item in items),
            tuple(int(item.canonical_correct) for item in items),
            tuple(item.perturbed_correct for item in items),
            tuple(item.perturbed_total for item in items),
        ),
    )
