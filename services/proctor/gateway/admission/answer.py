"""What the API server is answered, from what is said of the versions that a workload names. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from proctor.domain.admission.verdict import Ground, Verdict

_FORBIDDEN: Final = 403
_AWAY: Final = 503
#: Versions that a refusal tells of one by one.
_TOLD: Final = 4
#: Of a warning: the API server cuts what is longer than 4,096 characters in all, and clients show it on a line.
_WARNING_CHARACTERS: Final = 1_000


class Mode(StrEnum):
    """What a namespace asks for, by its label `proctor.dev/admission`."""

    ENFORCE = "enforce"
    WARN = "warn"
    """Everything is admitted, and whoever deploys it is warned."""
    AUDIT = "audit"
    """Everything is admitted, and what would have been refused stands in the API server's audit log."""


class OnError(StrEnum):
    """What becomes of a workload that cannot be looked up."""

    REFUSE = "refuse"
    ADMIT = "admit"


class Decision(StrEnum):
    """What became of a workload."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    LET_THROUGH = "let_through"
    """It would be refused where the namespace enforces it, or where what failed had not."""


class Reason(StrEnum):
    """Why, beside the grounds of a verdict."""

    NOT_CONCERNED = "not_concerned"
    """It names no model, or no other than before."""
    UNREADABLE = "unreadable"
    ERROR = "error"


class Answer(NamedTuple):
    """An answer, and by which words it is counted."""

    response: dict[str, Any]
    """Without the uid."""
    decision: Decision
    reason: Reason | Ground


def not_concerned() -> Answer:
    """Of an object that names no model, or no other than before."""
    return Answer({"allowed": True}, Decision.ADMITTED, Reason.NOT_CONCERNED)


def answer_of(mode: Mode, verdicts: Sequence[Verdict], *, only_own: bool = False) -> Answer:
    """Admit where every version may be deployed.

    Args:
        mode: what the namespace asks for.
        verdicts: of each version that is named.
        only_own: whether the versions stand where the Pods that are made of the object will not have them.
    """
    refused = [one for one in verdicts if not one.admits]
    notes = {
        "decision": "refused" if refused else "admitted",
        "models": ", ".join(f"{one.ground.value} (entry {one.sequence})" for one in verdicts),
    }
    warnings = [_ONLY_OWN] if only_own else []
    if not refused:
        ends = min((one.until for one in verdicts if one.until is not None), default=None)
        notes |= {} if ends is None else {"until": ends}
        return Answer(_allowed(notes, warnings), Decision.ADMITTED, Ground.APPROVED)
    told = [one.sentence for one in refused[:_TOLD]]
    more = len(refused) - len(told)
    message = "; ".join(told) + (f"; and {more} more" if more else "")
    return _refused(mode, message, refused[0].ground, _FORBIDDEN, notes, warnings)


def unreadable(mode: Mode, why: str) -> Answer:
    """Of an annotation that names no versions."""
    return _refused(mode, why, Reason.UNREADABLE, _FORBIDDEN, {"decision": "refused"}, [])


def failed(mode: Mode, on_error: OnError, why: str) -> Answer:
    """Of versions that could not be looked up."""
    if on_error is OnError.ADMIT:
        warning = f"proctor admitted without a look: {why}"
        return Answer(_allowed({"decision": "not looked up"}, [warning]), Decision.LET_THROUGH, Reason.ERROR)
    message = f"its models cannot be looked up: {why}; try again, or see the gateway's log"
    return _refused(mode, message, Reason.ERROR, _AWAY, {"decision": "not looked up"}, [])


_ONLY_OWN: Final = (
    "proctor.dev/model stands on the object alone: its Pods will name no model and be held to nothing; write it on the "
    "template's metadata, too"
)


def _refused(
    mode: Mode, message: str, reason: Reason | Ground, code: int, notes: dict[str, str], warnings: list[str]
) -> Answer:
    if mode is Mode.ENFORCE:
        kind = "Forbidden" if code == _FORBIDDEN else "ServiceUnavailable"
        status = {"code": code, "message": message, "reason": kind}
        response = {"allowed": False, "status": status, "auditAnnotations": notes}
        return Answer(_with(response, warnings), Decision.REFUSED, reason)
    notes = notes | {"message": message[:_WARNING_CHARACTERS]}
    if mode is Mode.WARN:
        warnings = [f"proctor would refuse: {message}", *warnings]
    return Answer(_allowed(notes, warnings), Decision.LET_THROUGH, reason)


def _allowed(notes: dict[str, str], warnings: list[str]) -> dict[str, Any]:
    return _with({"allowed": True, "auditAnnotations": notes}, warnings)


def _with(response: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    return response | ({"warnings": [one[:_WARNING_CHARACTERS] for one in warnings]} if warnings else {})
