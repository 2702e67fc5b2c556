"""What an audit ended with, as continuous integration shows it: the decision, and each rule that it was made by. Pure.

Whatever is in it may be hostile: names, reasons and causes quote suites, models and servers. Who writes it escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from proctor.cli.audits.status_lines import holds
from proctor.domain.channel_results import Verdict
from proctor.domain.decision import DecisionOutcome, scope_caveat
from proctor.gateway.status import AuditStatus
from proctor.runtime.records.audit_state import AuditState
from proctor.scorer.channels.registry import channels_of
from proctor.scorer.headline import DecidingNumber, deciding_numbers
from proctor.scorer.page.phrases import Side
from proctor.scorer.report.document import Report


class Result(StrEnum):
    """How a rule came out, in JUnit's words."""

    PASSED = "passed"
    FAILED = "failed"
    """What was found speaks against approval."""
    ERROR = "error"
    """It could not be told."""
    SKIPPED = "skipped"
    """Nobody asked for it."""


class Check(NamedTuple):
    """One rule of the gate."""

    name: str
    result: Result
    kind: str
    """The word of the gate for it, e.g. `block`, or `inconclusive`."""
    text: str


class Outcome(NamedTuple):
    """An audit that has ended."""

    suite: str
    model_id: str
    audit_id: str = ""
    decision: str = ""
    """What holds now, `approve`, `review` or `block`; empty where there is none."""
    caveat: str = ""
    """What an approval has to say of its scope."""
    reasons: tuple[str, ...] = ()
    """The deciding one first; why there is no decision, where there is none."""
    numbers: tuple[DecidingNumber, ...] = ()
    """Score inflation, Contamination Score and p-value; none where the report is not at hand."""
    checks: tuple[Check, ...] = ()
    facts: Mapping[str, str] = {}
    """Digests and numbers by which the audit is found again."""
    page: str = ""
    """The address of its page in the dashboard; empty where none is known."""


_DECISIONS: Final = {
    DecisionOutcome.APPROVE: Result.PASSED,
    DecisionOutcome.REVIEW: Result.FAILED,
    DecisionOutcome.BLOCK: Result.FAILED,
}
_VERDICTS: Final = {
    Verdict.CLEAN: Result.PASSED,
    Verdict.CONTAMINATED: Result.FAILED,
    Verdict.INCONCLUSIVE: Result.FAILED,
    Verdict.INVALID: Result.ERROR,
    Verdict.NOT_AUDITED: Result.ERROR,
}
_SIDES: Final = {
    Side.WITHIN: Result.PASSED,
    Side.ACROSS: Result.FAILED,
    Side.PAST: Result.FAILED,
    Side.UNKNOWN: Result.ERROR,
}


def outcome_of(status: AuditStatus, report: Report | None, dashboard: str | None = None) -> Outcome:
    """What is to be shown of an audit that has ended.

    Args:
        status: the audit.
        report: its report's document; None where it is not at hand, and rules beside the decision are left out.
        dashboard: the address of the dashboard that shows it.
    """
    page = f"{dashboard.rstrip('/')}/audits/{status.audit_id}" if dashboard else ""
    named = Outcome(status.suite, status.model_id, status.audit_id, page=page)
    verdict = status.decision
    if status.state is not AuditState.DECIDED or verdict is None:
        why = status.detail or f"the audit is {status.state.value}"
        return _undecided(named, why, status.state.value)
    # What holds now is what the command leaves with; what was decided stands with its reasons behind it.
    signed = holds(verdict)
    said = (f"Decided was {verdict.outcome.value}; {signed}",) if signed else ()
    reasons = (*said, *(reason.text for reason in verdict.reasons))
    caveat = scope_caveat(verdict.holds, verdict.scope) or ""
    decision = Check("decision", _DECISIONS[verdict.holds], verdict.holds.value, "\n".join(reasons))
    facts = {
        "report": verdict.report_digest,
        "scope": verdict.scope.value if verdict.scope else "",
        "registry version": verdict.registry_version or "",
    }
    if report is not None:
        facts |= {"weights": report.subject.digest, "fingerprint": report.fingerprint}
    return named._replace(
        decision=verdict.holds.value,
        caveat=caveat,
        reasons=reasons,
        numbers=() if report is None else deciding_numbers(report),
        checks=(decision, *(() if report is None else _rules(report))),
        facts={name: value for name, value in facts.items() if value},
    )


def undecided(suite: str, model_id: str, why: str) -> Outcome:
    """The same of an audit that came to no decision, of which no more is known."""
    return _undecided(Outcome(suite, model_id), why, "failed")


def _undecided(named: Outcome, why: str, kind: str) -> Outcome:
    return named._replace(reasons=(why,), checks=(Check("decision", Result.ERROR, kind, why),))


def _rules(report: Report) -> tuple[Check, ...]:
    channels = dict.fromkeys((*channels_of(report.suite), *report.evidence.others))
    # That p is small makes a block of what is past a limit, and is nothing by itself.
    limits = [number for number in deciding_numbers(report) if number.name != "p-value"]
    return (
        *(_of_channel(name, report) for name in channels),
        *(
            Check(one.name, _SIDES[one.side], one.side.value, f"{one.value} {one.unit} ({one.interval}): {one.status}")
            for one in limits
        ),
    )


def _of_channel(name: str, report: Report) -> Check:
    evidence, required = report.evidence, name in report.suite.required_channels
    verdict, found = evidence.verdict_of(name), evidence.result_of(name)
    text = " ".join(found.reasons) if found is not None else evidence.not_audited.get(name, "it did not run")
    # What is not asked for stands against an approval only where it says that the model is contaminated.
    asked = required or verdict is Verdict.CONTAMINATED
    result = _VERDICTS[verdict] if asked or verdict is Verdict.CLEAN else Result.SKIPPED
    return Check(f"channel {name}{' (required)' if required else ''}", result, verdict.value, text)
