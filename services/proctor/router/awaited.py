"""What an audit waits for another service to answer, by its state. Pure: the same row asks the same again."""

from __future__ import annotations

from typing import Final

from proctor.domain.messages import (
    BuildVariants,
    EndpointProbed,
    Message,
    ProbeEndpoint,
    ScoreAudit,
    StartAudit,
    VariantsToCheck,
)
from proctor.router.audit import AuditView
from proctor.runtime.records.store import AuditState

#: An endpoint that is away is probed again every so often, for so long: a server that restarts is back by then, and who
#: mistyped its address hears of that soon. One that goes away later is waited for longer (`Timing.outage_s`).
PROBE_EVERY_S: Final = 2.0
PROBED_FOR_S: Final = 30.0


def probe_again(audit: AuditView, answer: EndpointProbed, outage_s: float) -> ProbeEndpoint | None:
    """The probe after one that found the endpoint away, to be sent after PROBE_EVERY_S; None where it is given up."""
    waited_s = answer.tried * PROBE_EVERY_S
    if not answer.unavailable or waited_s >= min(PROBED_FOR_S, outage_s):
        return None
    return ProbeEndpoint(audit_id=audit.audit_id, endpoint=audit.inputs.endpoint, tried=answer.tried + 1)


def request_of(audit: AuditView) -> Message | None:
    """The message whose answer takes an audit on from its state; None where it waits for shards, for a
    search of training data, or for the registry.

    Every one of them may be sent twice: its second answer finds the state moved on.
    """
    inputs = audit.inputs
    if audit.record.state is AuditState.CREATED:
        # On record is accepted, whatever became of the message that should have begun it.
        return StartAudit(audit_id=audit.audit_id)
    if audit.record.state is AuditState.PROBING:
        return ProbeEndpoint(audit_id=audit.audit_id, endpoint=inputs.endpoint)
    if audit.record.state is AuditState.REWORDING:
        return BuildVariants(
            audit_id=audit.audit_id,
            items=inputs.asked_now.items,
            settings=inputs.perturbation,
            rewordings=inputs.rewordings,
            calibration=inputs.calibration,
            questions=inputs.questions,
            benchmark=audit.suite.dataset.benchmark_name,
            # Nothing of the fresh items, which are not reworded: an earlier worker reads the message then.
            contents=inputs.contents.of_benchmark(),
            rewrites=inputs.rewrites,
            check=_to_check(audit),
            control=inputs.asked_now.control,
            look=inputs.look,
        )
    if audit.record.state is AuditState.SCORING and inputs.manifest is not None:
        # A decision waits for the search, which is asked for by itself (`proctor.router.searching`).
        if inputs.searching:
            return None
        return ScoreAudit(
            audit_id=audit.audit_id,
            manifest=inputs.manifest,
            fresh=inputs.fresh is not None,
            searched=inputs.searched,
            control=inputs.control is not None,
            replicates=audit.suite.decoding.replicates,
            proven=inputs.weights is not None,
            look=inputs.look,
        )
    return None


def _to_check(audit: AuditView) -> VariantsToCheck | None:
    """What the solvers answered; None where they are not to be asked, or were not yet."""
    if audit.inputs.proposed is None:
        return None
    answers = tuple(asking.said for asking in audit.inputs.checking if asking.said is not None)
    return VariantsToCheck(
        variants=audit.inputs.proposed,
        answers=answers,
        extractor=audit.suite.metric.extractor,
        control=audit.inputs.proposed_control,
    )


def step_of(audit: AuditView) -> str:
    """The name under which the ledger notes that an audit's request was sent. A state comes back in another
    round, and at another look."""
    checked = "-checked" if audit.inputs.proposed is not None else ""
    look = "" if audit.inputs.look is None else f"-look-{audit.inputs.look}"
    return f"{audit.record.state}-{audit.inputs.rounds}{checked}{look}"
