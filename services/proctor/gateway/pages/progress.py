"""How far an audit is, in the words of a page."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.gateway.status import AuditStatus
from proctor.runtime.records.audit_state import AuditState

#: What an audit goes through, by the states in which it does.
_STEPS: Final = (
    ("Begun", (AuditState.CREATED, AuditState.PROBING)),
    ("Rewording", (AuditState.REWORDING, AuditState.PARAPHRASING)),
    ("Asking", (AuditState.TRANSMITTING, AuditState.ASKING, AuditState.ANSWERING)),
    ("Scoring", (AuditState.SCORING,)),
    ("Writing to the registry", (AuditState.REGISTERING,)),
    ("Decided", (AuditState.DECIDED,)),
)


class Step(NamedTuple):
    """One step of an audit's way."""

    name: str
    here: bool
    done: bool


def steps_of(state: AuditState) -> tuple[Step, ...]:
    """The way of an audit, and where on it that is; none for one that was ended before its end."""
    places = {one: place for place, (_, states) in enumerate(_STEPS) for one in states}
    if state not in places:
        return ()
    now = places[state]
    return tuple(
        Step(name, here=place == now, done=place < now or state is AuditState.DECIDED)
        for place, (name, _) in enumerate(_STEPS)
    )


def said_of(status: AuditStatus) -> str:
    """How far an audit is in one sentence, which changes seldom enough to be read out."""
    if status.paused:
        return f"Audit paused while {status.state.value}."
    if status.searching and status.state is AuditState.SCORING:
        return "Audit waiting for the search of its training data."
    if status.trials is None or not status.trials.planned:
        return f"Audit {status.state.value}."
    tens = 10 * (10 * (status.trials.done + status.trials.dead) // status.trials.planned)
    return f"Audit {status.state.value}: {tens} % of this stage's trials have ended."
