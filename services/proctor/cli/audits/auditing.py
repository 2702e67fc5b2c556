"""Running audits from the command line: submit, watch until they end, read what they ended with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from proctor.cli.audits.away import Attendant
from proctor.cli.audits.following import follow
from proctor.cli.audits.report_files import report_page
from proctor.cli.audits.showing import left_alone
from proctor.cli.audits.status_lines import EXIT_CODES as EXIT_CODES
from proctor.cli.audits.status_lines import STEPS
from proctor.cli.terminal import say
from proctor.domain.decision import DecisionEvent, scope_caveat
from proctor.domain.errors import ProctorError
from proctor.domain.messages import Priority
from proctor.domain.trial import ANSWER_STAGE
from proctor.evidence.perturbation.rewording_cost import CODE as REWORDING_COST
from proctor.gateway.audits import LocalDesk, local_desk
from proctor.gateway.status import AuditStatus, Verdict
from proctor.gateway.watching import watch
from proctor.router.audit import view
from proctor.router.ledger.store import Progress as LedgerProgress
from proctor.router.stages.registry import stage_of, stages_so_far
from proctor.router.submit.gathering import AuditData
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.settings import Settings
from proctor.scorer.channels.channel import Printed
from proctor.scorer.channels.registry import CHANNELS


class AuditResult(NamedTuple):
    """What an audit ended with."""

    audit_id: str
    event: DecisionEvent
    report: dict[str, Any]
    html_path: Path
    trials: LedgerProgress
    registry_version: str | None

    def status(self) -> AuditStatus:
        """The same as who only watches it sees it."""
        event = self.event
        return AuditStatus(
            audit_id=self.audit_id,
            suite=event.audit_suite_id,
            model_id=event.model_id,
            state=AuditState.DECIDED,
            # It has just ended: nobody has signed anything yet.
            decision=Verdict.of(event, self.registry_version, None),
        )

    def summary(self) -> dict[str, Any]:
        """The decision and the evidence behind it as plain data; the same for two runs but for the path."""
        perturbation = self.report["evidence"]["perturbation"] or {}

        def estimate(name: str) -> dict[str, Any]:
            return perturbation.get(name) or {"value": None, "low": None, "high": None}

        score = estimate("contamination_score")
        return {
            "model": self.event.model_id,
            "model_digest": self.event.model_digest,
            "weights": self.event.weights,
            "fingerprint": self.event.fingerprint,
            "protocol_digest": self.event.protocol_digest,
            "decision": self.event.outcome.value,
            "scope": self.event.scope,
            "scope_caveat": scope_caveat(self.event.outcome, self.event.scope),
            "harder_wordings": next(
                (limit["text"] for limit in self.report["limits"] if limit["code"] == REWORDING_COST), None
            ),
            "reasons": [reason.text for reason in self.event.reasons],
            "reason_codes": [reason.code for reason in self.event.reasons],
            "contamination_score": score["value"],
            "contamination_score_ci": [score["low"], score["high"]],
            "score_inflation_points": estimate("score_inflation")["value"],
            "score_inflation_points_ci": [estimate("score_inflation")["low"], estimate("score_inflation")["high"]],
            "p_value": perturbation.get("p_value"),
            "above_chance": perturbation.get("not_above_chance") is None,
            "accuracy_canonical": estimate("accuracy_canonical")["value"],
            "accuracy_perturbed": estimate("accuracy_perturbed")["value"],
            "n_items": self.event.n_items,
            "n_trials": self.trials.planned,
            "sequential": self._sequential(),
            "registry_version": self.registry_version,
            "items": [
                # A report of before there were ranks has none.
                {key: item.get(key) for key in ("item_id", "suspicion", "rank", "flagged")}
                for item in perturbation.get("items", [])
            ],
            "n_suspected_items": sum(item["suspicion"] > 0 for item in perturbation.get("items", [])),
            "report_digest": self.event.report_digest,
            "report_path": str(self.html_path),
            **{key: value for printed in self.printed_by_channels() for key, value in printed.keys.items()},
        }

    def _sequential(self) -> dict[str, Any] | None:
        """Where a sequential audit stopped, and why; None of a fixed one."""
        record = self.report.get("sequential")
        if record is None:
            return None
        return {
            "look": len(record["looks"]),
            "looks": len(record["sizes"]),
            "items_asked": record["looks"][-1]["n_items"],
            "items_planned": record["sizes"][-1],
            "stop": record["stop"],
        }

    def printed_by_channels(self) -> list[Printed]:
        """What the channels say beside the decision: those of Proctor in their words, of plug-ins the verdict."""
        evidence, folder = self.report["evidence"], self.html_path.parent
        printed = [
            CHANNELS.get(name).printed(found, folder)
            for name in CHANNELS.built_in
            if (found := evidence.get(name)) is not None
        ]
        verdicts = {name: found["verdict"] for name, found in evidence.get("others", {}).items()}
        if verdicts:
            line = "; ".join(f"{name} channel: {verdict}" for name, verdict in verdicts.items())
            printed.append(Printed({"other_verdicts": verdicts}, line))
        return [one for one in printed if one is not None]


def run_audits(
    audited: Sequence[AuditData],
    settings: Settings,
    *,
    attendant: Attendant,
    priority: Priority = Priority.NORMAL,
    stays: bool = False,
) -> list[AuditResult]:
    """Audit suites side by side and wait for their decisions.

    An audit that was interrupted goes on where it stopped.

    Args:
        audited: the suites with their data.
        settings: where the services are.
        attendant: says which services of the stack are away, and raises when one is given up.
        priority: whose prompts go first where audits share an endpoint.
        stays: whether the services outlive the command, so that an audit goes on when nobody waits for it any more.

    Raises:
        BadInputError: a suite names an endpoint that is not known here.
        ProctorError: an audit failed or was cancelled; the message says which and why.
    """
    with local_desk(settings, at_terminal=True) as desk:
        audit_ids = [_begin(desk, data, priority) for data in audited]
        return await_audits(audit_ids, desk, attendant=attendant, stays=stays)


def await_audits(
    audit_ids: Sequence[str], desk: LocalDesk, *, attendant: Attendant, stays: bool = False
) -> list[AuditResult]:
    """Wait for the decisions of audits that have begun, and show them meanwhile.

    Args:
        audit_ids: which ones.
        desk: where they are.
        attendant: see `run_audits`.
        stays: see `run_audits`.

    Raises:
        ProctorError: an audit failed or was cancelled; the message says which and why.
    """
    look = partial(attendant.patiently, lambda: [desk.look(audit_id) for audit_id in audit_ids])
    seen = watch(look, check=attendant.check)
    try:
        ended = follow(seen)
    except KeyboardInterrupt:
        for audit_id in audit_ids:
            stopped = f"Audit {audit_id} stops with its stack; the same command goes on from here."
            say(left_alone(audit_id) if stays else stopped, err=True)
        raise
    if undecided := [status for status in ended if status.state is not AuditState.DECIDED]:
        raise ProctorError(_why_undecided(undecided, desk))
    return [attendant.patiently(partial(_result, audit_id, desk)) for audit_id in audit_ids]


def _begin(desk: LocalDesk, data: AuditData, priority: Priority) -> str:
    submitted = desk.begin(data, priority)
    for note in submitted.notes:
        say(f"note: {note}", err=True)
    audit = submitted.audit
    if submitted.stopped_at is not None:
        stopped = f"Going on with audit {audit.audit_id}, which stopped at: {STEPS[submitted.stopped_at]}."
        say(f"{stopped} {_what_is_there(audit)}", err=True)
    return audit.audit_id


def _what_is_there(audit: AuditStatus) -> str:
    stage, trials = audit.stage or ANSWER_STAGE, audit.trials
    done, planned = (trials.done, trials.planned) if trials else (0, 0)
    return f"{done} of {planned} {stage_of(stage).asked_for} are there."


def _why_undecided(ended: Sequence[AuditStatus], desk: LocalDesk) -> str:
    told = [
        f"audit {status.audit_id} was cancelled"
        if status.state is AuditState.CANCELLED
        else f"audit {status.audit_id} failed: {status.detail.rstrip('.')}"
        for status in ended
    ]
    nothing_written = all(desk.records.decision(status.audit_id) is None for status in ended)
    failed = any(status.state is AuditState.FAILED for status in ended)
    return (
        "; ".join(told)
        + (". Nothing was written to the registry" if nothing_written else "")
        + (". Once that is mended, the same command goes on from here." if failed else ".")
    )


def _result(audit_id: str, desk: LocalDesk) -> AuditResult:
    decided = desk.records.decision(audit_id)
    assert decided is not None
    event = decision_of(audit_id, decided)
    html_path = report_page(event, desk.settings.home, desk.artifacts())
    return AuditResult(
        audit_id=audit_id,
        event=event,
        report=json.loads(html_path.with_suffix(".json").read_bytes()),
        html_path=html_path,
        trials=desk.counts.ledger.progress_over(audit_id, stages_so_far(view(desk.records, audit_id), ANSWER_STAGE)),
        registry_version=desk.records.registration(audit_id),
    )
