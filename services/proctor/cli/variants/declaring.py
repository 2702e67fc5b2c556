"""Declaring the model of a decided audit clean: what has to hold for that, and the cost of rewording that it gives."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.evidence import PerturbationEvidence, Verdict
from proctor.domain.fidelity import MAX_GROUNDS_CHARACTERS, Fidelity
from proctor.domain.manifest import VariantIndex
from proctor.domain.weights import Weights
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.clusters import too_few_clusters
from proctor.evidence.written_numbers import counted, in_points, points
from proctor.formats.faults import shown
from proctor.perturbation.library.fidelity import CleanModel, measure_fidelity, record_fidelity
from proctor.router.audit import view
from proctor.runtime.artifacts.store import ArtifactStore, get_model
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.store import Records
from proctor.scorer.report.document import Report

#: A strategy that may cost a clean model more than this needs a control (the design's rule).
_CHEAP_POINTS: Final = 1.0


class Declared(NamedTuple):
    """A clean model on record."""

    audit_id: str
    fidelity: Fidelity
    new: bool
    """False where the same measurement was on record already."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of this control."""
        found = []
        one = self.fidelity
        if not one.digest_verified:
            found.append(
                f"the endpoint of {one.model_id} did not prove which weights it serves; reports that are held against "
                "this model say so"
            )
        if one.own_decision is DecisionOutcome.BLOCK:
            found.append(f"the audit of {one.model_id} was blocked; reports that are held against this model say so")
        return tuple(found)

    @property
    def conclusion(self) -> str:
        """The measurement in plain words."""
        one = self.fidelity
        assert one.cost.high is not None
        need = (
            f"It may cost a clean model more than {_CHEAP_POINTS:g} point, so audits by this strategy need a control."
            if one.cost.high > _CHEAP_POINTS
            else f"It costs a clean model {_CHEAP_POINTS:g} point at most."
        )
        return (
            f"Rewording by {one.strategy} on {one.benchmark} cost the clean model {one.model_id} "
            f"{in_points(one.cost)} over {counted(one.n_items, 'item')}"
            f"{'' if self.new else '; that was on record already'}. {need}"
        )

    def document(self) -> dict[str, Any]:
        """The measurement as plain data."""
        one = self.fidelity
        return {
            "audit": self.audit_id,
            "model": one.model_id,
            "model_digest": one.digest,
            "model_digest_verified": one.digest_verified,
            "decision": one.own_decision,
            "grounds": one.grounds,
            "strategy": one.strategy,
            "benchmark": one.benchmark,
            "rewordings": one.variants,
            "items": one.n_items,
            "cost_points": one.cost.value,
            "cost_points_ci": [one.cost.low, one.cost.high],
            "level": one.cost.level,
            "accuracy": one.accuracy.value,
            "accuracy_ci": [one.accuracy.low, one.accuracy.high],
            "new": self.new,
            "notes": list(self.notes),
            "conclusion": self.conclusion,
        }


def declare_clean(
    audit_id: str, grounds: str, records: Records, artifacts: ArtifactStore, *, despite_block: bool
) -> Declared:
    """Record what rewording cost the model of a decided audit.

    Raises:
        BadInputError: where there are no grounds, or no audit that such a model could be measured by.
        StoreError: where the audit's documents are missing, or the model is on record on other grounds.
    """
    reason = " ".join(grounds.split())
    if not 0 < len(reason) <= MAX_GROUNDS_CHARACTERS:
        raise BadInputError(
            f"--grounds has {len(reason)} characters: say in 1 to {MAX_GROUNDS_CHARACTERS} why the model cannot have "
            "seen the benchmark, e.g. that it was written after the model's training data were gathered"
        )
    try:
        audit = view(records, audit_id)
    except StoreError:
        raise BadInputError(
            f"there is no audit {shown(audit_id)} in this home: give the name of the folder in which its report lies, "
            "or --home, the home that ran it"
        ) from None
    event = records.decision(audit_id)
    if event is None or audit.inputs.variants is None:
        raise BadInputError(
            f"audit {audit_id} is not decided, its state is {audit.record.state.value!r}: let it end first, with "
            "`proctor audit run` and its suite"
        )
    report = _report(audit_id, decision_of(audit_id, event), artifacts)
    found = _usable_evidence(audit_id, report)
    if found.replicates is not None:
        raise BadInputError(
            f"audit {audit_id} asked each prompt {found.replicates.n_replicates} times, and a control is compared with "
            "single answers: measure the model by an audit without decoding_config.replicates"
        )
    outcome = report.decision.outcome
    proven = report.subject.weights_known is Weights.PROVEN
    if outcome is DecisionOutcome.BLOCK and not despite_block:
        raise BadInputError(
            f"audit {audit_id} was blocked: {report.subject.model_id} lost {in_points(found.score_inflation)} on "
            "rewordings, as a model does that knows the benchmark, and as every model does where rewordings are "
            "harder. If the grounds rule the first out, add --despite-block; else take another model"
        )
    measured = measure_fidelity(
        _answers(found),
        strategy=report.suite.perturbation.perturbation_strategy,
        benchmark=report.suite.dataset.benchmark_name,
        variants=get_model(artifacts, audit.inputs.variants, VariantIndex).rewordings_digest,
        model=CleanModel(report.subject.model_id, report.subject.digest, reason, proven, outcome),
        level=report.suite.scoring.confidence_level,
    )
    if too_few := too_few_clusters(found.clusters):
        raise BadInputError(f"audit {audit_id} measures no cost of rewording: {too_few[0].text}")
    if found.clusters is not None:
        measured = measured.model_copy(update={"cost": found.score_inflation, "accuracy": found.accuracy_canonical})
    _check_precision(measured, report.suite.governance.block_deployment_above_contaminated_pct)
    return Declared(audit_id, measured, record_fidelity(records, measured))


def _report(audit_id: str, event: DecisionEvent, artifacts: ArtifactStore) -> Report:
    try:
        return get_model(artifacts, event.report_digest, Report)
    except ValidationError:
        raise BadInputError(
            f"the report of audit {audit_id} was written by another version of Proctor: run the audit again"
        ) from None


def _usable_evidence(audit_id: str, report: Report) -> PerturbationEvidence:
    found = report.evidence.perturbation
    if found is None or found.verdict is Verdict.INVALID or report.evidence.protocol.verdict is Verdict.INVALID:
        raise BadInputError(
            f"the answers of audit {audit_id} cannot be compared, so they measure no cost: "
            f"{report.decision.reasons[0].text}"
        )
    return found


def _answers(found: PerturbationEvidence) -> PairedAnswers:
    return PairedAnswers.of(
        [item.item_id for item in found.items],
        [item.canonical_correct for item in found.items],
        [item.perturbed_correct for item in found.items],
        [item.perturbed_total for item in found.items],
    )


def _check_precision(measured: Fidelity, limit: float) -> None:
    """Refuse a control whose noise alone would hide what the suite's limit is there to block."""
    cost = measured.cost
    assert cost.low is not None
    assert cost.high is not None
    half_width = (cost.high - cost.low) / 2
    if 0 < limit < half_width:
        raise BadInputError(
            f"with {counted(measured.n_items, 'item')} the cost of rewording is known to {points(half_width)} either "
            f"way, and the suite blocks past {points(limit)}: audit the clean model with more items, and record that "
            "audit"
        )
