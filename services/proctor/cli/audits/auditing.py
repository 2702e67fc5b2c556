"""Running audits from the command line: submit, watch until they end, read what they ended with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from proctor.cli.audits.report_files import report_page
from proctor.cli.terminal import say
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import ExitCode, ProctorError
from proctor.domain.messages import StartAudit
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE, TRANSMIT_STAGE
from proctor.formats.router_table_writing import ROUTER_TABLE
from proctor.router.audit import AuditData, AuditInputs, submit
from proctor.router.ledger import Ledger
from proctor.router.ledger import Progress as LedgerProgress
from proctor.runtime.artifacts import ArtifactStore, open_artifacts
from proctor.runtime.records import AuditRecord, AuditState, Records
from proctor.runtime.settings import Settings
from proctor.runtime.tasks import configure, send

_POLL_INTERVAL_S = 0.1
#: How often a watched stack is asked whether its processes are alive.
_HEALTH_INTERVAL_S = 2.0

EXIT_CODES = {
    DecisionOutcome.APPROVE: ExitCode.APPROVED_OR_DONE,
    DecisionOutcome.REVIEW: ExitCode.REVIEW,
    DecisionOutcome.BLOCK: ExitCode.BLOCKED,
}

_STEPS = {
    AuditState.CREATED: "waiting for the router",
    AuditState.PROBING: "asking the endpoint",
    AuditState.REWORDING: "rewording items",
    AuditState.PARAPHRASING: "rewording items: asking the rewording model",
    AuditState.TRANSMITTING: "asking the routers",
    AuditState.ANSWERING: "answering",
    AuditState.SCORING: "weighing the evidence",
    AuditState.REGISTERING: "writing to the registry",
    AuditState.DECIDED: "decided",
    AuditState.FAILED: "failed",
}


class AuditResult(NamedTuple):
    """What an audit ended with."""

    audit_id: str
    event: DecisionEvent
    report: dict[str, Any]
    html_path: Path
    trials: LedgerProgress
    registry_version: str | None

    def summary(self) -> dict[str, Any]:
        """The decision and the evidence behind it as plain data; the same for two runs but for the path."""
        perturbation = self.report["evidence"]["perturbation"] or {}

        noise = self.report["evidence"].get("noise")
        through_routers = (
            {"noise_verdict": noise["verdict"], "router_table": str(self.html_path.with_name(ROUTER_TABLE))}
            if noise is not None and noise["settings"]
            else {}
        )

        def estimate(name: str) -> dict[str, Any]:
            return perturbation.get(name) or {"value": None, "low": None, "high": None}

        score = estimate("contamination_score")
        return {
            "model": self.event.model_id,
            "model_digest": self.event.model_digest,
            "fingerprint": self.event.fingerprint,
            "protocol_digest": self.event.protocol_digest,
            "decision": self.event.outcome.value,
            "reasons": [reason.text for reason in self.event.reasons],
            "reason_codes": [reason.code for reason in self.event.reasons],
            "contamination_score": score["value"],
            "contamination_score_ci": [score["low"], score["high"]],
            "score_inflation_points": estimate("score_inflation")["value"],
            "score_inflation_points_ci": [estimate("score_inflation")["low"], estimate("score_inflation")["high"]],
            "p_value": perturbation.get("p_value"),
            "accuracy_canonical": estimate("accuracy_canonical")["value"],
            "accuracy_perturbed": estimate("accuracy_perturbed")["value"],
            "n_items": self.event.n_items,
            "n_trials": self.trials.planned,
            "registry_version": self.registry_version,
            "items": [
                {key: item[key] for key in ("item_id", "suspicion", "flagged")}
                for item in perturbation.get("items", [])
            ],
            "report_digest": self.event.report_digest,
            "report_path": str(self.html_path),
            **through_routers,
        }


def run_audits(
    audited: Sequence[AuditData], settings: Settings, *, check_health: Callable[[], None]
) -> list[AuditResult]:
    """Audit suites side by side and wait for their decisions.

    An audit that was interrupted goes on where it stopped.

    Args:
        audited: the suites with their data.
        settings: where the services are.
        check_health: raises when a service of the stack has died.

    Raises:
        BadInputError: a suite names an endpoint that is not known here.
        ProctorError: an audit failed; the message says which and why.
    """
    configure(settings)
    artifacts = open_artifacts(settings)
    with closing(Records(settings.records_url)) as records, closing(Ledger(settings.ledger_url)) as ledger:
        audits = []
        for data in audited:
            record, resumed = submit(data, settings, records, artifacts)
            audits.append(record)
            for note in data.notes:
                say(f"note: {note}", err=True)
            if resumed:
                stopped = f"Going on with audit {record.audit_id}, which stopped at: {_STEPS[record.state]}."
                say(f"{stopped} {_what_is_there(record, ledger)}", err=True)
            send(StartAudit(audit_id=record.audit_id))
        ended = _watch(audits, [data.suite for data in audited], records, ledger, check_health)
        failures = [record for record in ended if record.state is AuditState.FAILED]
        if failures:
            undecided = all(records.decision(record.audit_id) is None for record in failures)
            raise ProctorError(
                "; ".join(f"audit {record.audit_id} failed: {record.detail.rstrip('.')}" for record in failures)
                + (". Nothing was written to the registry" if undecided else "")
                + ". Once that is mended, the same command goes on from here."
            )
        return [_result(record, records, ledger, settings.home, artifacts) for record in ended]


def _what_is_there(record: AuditRecord, ledger: Ledger) -> str:
    stage = AuditInputs.model_validate(record.inputs).ledger_stage or ANSWER_STAGE
    done = ledger.progress(record.audit_id, stage)
    asked_for = {ANSWER_STAGE: "answers", TRANSMIT_STAGE: "messages of routers"}
    what = asked_for.get(stage.partition("-")[0], "rewordings")
    return f"{done.done} of {done.planned} {what} are there."


def _watch(
    audits: Sequence[AuditRecord],
    suites: Sequence[Suite],
    records: Records,
    ledger: Ledger,
    check_health: Callable[[], None],
) -> list[AuditRecord]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[step]}", markup=False),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    seen: dict[str, AuditState] = {}
    next_health_check = time.monotonic()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars: dict[str, TaskID] = {
            record.audit_id: progress.add_task(suite.model.model_id, total=None, step="waiting")
            for record, suite in zip(audits, suites, strict=True)
        }
        while True:
            current = [records.audit(record.audit_id) for record in audits]
            for record, suite in zip(current, suites, strict=True):
                counts = _under_way(record, ledger)
                progress.update(
                    bars[record.audit_id],
                    total=counts.planned or None,
                    completed=counts.done + counts.dead,
                    step=_STEPS[record.state],
                )
                if not console.is_terminal and seen.get(record.audit_id) is not record.state:
                    seen[record.audit_id] = record.state
                    say(f"{suite.model.model_id}: {_STEPS[record.state]}", err=True)
            if all(record.state.ended for record in current):
                return current
            if time.monotonic() >= next_health_check:
                check_health()
                next_health_check = time.monotonic() + _HEALTH_INTERVAL_S
            time.sleep(_POLL_INTERVAL_S)


def _under_way(record: AuditRecord, ledger: Ledger) -> LedgerProgress:
    """Progress of the stage that an audit is in; nothing planned while it is in none."""
    stage = AuditInputs.model_validate(record.inputs).ledger_stage
    return LedgerProgress(0, 0, 0, 0) if stage is None else ledger.progress(record.audit_id, stage)


def _result(record: AuditRecord, records: Records, ledger: Ledger, home: Path, artifacts: ArtifactStore) -> AuditResult:
    event = DecisionEvent.model_validate(records.decision(record.audit_id))
    html_path = report_page(event, home, artifacts)
    return AuditResult(
        audit_id=record.audit_id,
        event=event,
        report=json.loads(html_path.with_suffix(".json").read_bytes()),
        html_path=html_path,
        trials=ledger.progress(record.audit_id, ANSWER_STAGE),
        registry_version=records.registration(record.audit_id),
    )
