"""Every state of an audit: who acts in it, what it may become, and on what. The router's one table of it.

An audit goes this way; in brackets what not every audit comes through:

    created → probing → rewording ⇄ (paraphrasing) → rewording ⇄ (asking) → (transmitting) → (asking) → answering
            → scoring → (rewording, after a look) → (registering) → decided

What asks between two rewordings are the solvers of the answering check.

What may become of each state, on what, and who is waited for in it, is `TABLE`. Nothing moves an audit past it: the
dispatcher asks it from which states a cause may come (`before`). A test walks every transition with a real router.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from proctor.runtime.records.audit_state import AuditState

#: States of an audit that goes on by itself.
RUNNING: Final = tuple(state for state in AuditState if not state.ended)


class Cause(StrEnum):
    """On what an audit moves: a message, the end of a stage, or what somebody does."""

    STARTED = "StartAudit"
    PROBED = "EndpointProbed"
    REWORDED = "VariantsBuilt"
    STAGE_ENDED = "the end of the stage"
    """Found by whoever looks at the ledger: on ShardsAnswered, TakeOn or Reconcile."""
    SCORED = "AuditScored"
    WRITTEN = "DecisionWritten"
    RESUMED = "resume, or the same suite submitted again"
    FAILED = "a step that fails"
    """Or NotUnderstood: a worker's word that it cannot read what it was sent."""
    CANCELLED = "cancel"


class Row(NamedTuple):
    """A state of the table."""

    acts: str
    """Who is waited for."""
    moves: Mapping[Cause, tuple[AuditState, ...]] = {}
    service: str | None = None
    """The service that is asked, whose workers must not all be gone while an audit is in this state."""


class Transition(NamedTuple):
    """One move that the table allows."""

    before: AuditState
    cause: Cause
    after: AuditState


#: Where the variants are there: what asks the model next, by what the suite wants and what was asked already.
_TO_BE_ASKED: Final = (AuditState.TRANSMITTING, AuditState.ASKING, AuditState.ANSWERING)

_ROWS: Final[Mapping[AuditState, Row]] = {
    AuditState.CREATED: Row("the router"),
    AuditState.PROBING: Row(
        "the endpoint",
        {Cause.PROBED: (AuditState.PROBING, AuditState.REWORDING, AuditState.PARAPHRASING, *_TO_BE_ASKED)},
        "inference",
    ),
    AuditState.REWORDING: Row(
        "the perturbation service", {Cause.REWORDED: (AuditState.PARAPHRASING, *_TO_BE_ASKED)}, "perturbation"
    ),
    AuditState.PARAPHRASING: Row("the model that rewords", {Cause.STAGE_ENDED: (AuditState.REWORDING,)}, "inference"),
    AuditState.TRANSMITTING: Row(
        "the routers", {Cause.STAGE_ENDED: (AuditState.ASKING, AuditState.ANSWERING)}, "inference"
    ),
    AuditState.ASKING: Row(
        "the solvers of the answering check, or the model of a plug-in's stage",
        {Cause.STAGE_ENDED: (AuditState.REWORDING, AuditState.ASKING, AuditState.ANSWERING)},
        "inference",
    ),
    AuditState.ANSWERING: Row("the model under audit", {Cause.STAGE_ENDED: (AuditState.SCORING,)}, "inference"),
    AuditState.SCORING: Row(
        "the scorer",
        # The registry may be quicker than the scorer's own message. After a look further items are reworded.
        {
            Cause.SCORED: (AuditState.REWORDING, AuditState.REGISTERING, AuditState.DECIDED),
            Cause.WRITTEN: (AuditState.DECIDED,),
        },
        "scorer",
    ),
    AuditState.REGISTERING: Row("the registry", {Cause.WRITTEN: (AuditState.DECIDED,)}, "registry"),
    AuditState.FAILED: Row(
        "a person",
        {Cause.RESUMED: (AuditState.CREATED,), Cause.STARTED: (AuditState.PROBING, AuditState.REGISTERING)},
    ),
    AuditState.DECIDED: Row("nobody"),
    AuditState.CANCELLED: Row("nobody"),
}
#: Of every state that runs. Started again, an audit has its endpoint looked at, or the decision written that is on
#: record.
_WHILE_IT_RUNS: Final[Mapping[Cause, tuple[AuditState, ...]]] = {
    Cause.STARTED: (AuditState.PROBING, AuditState.REGISTERING),
    Cause.FAILED: (AuditState.FAILED,),
    Cause.CANCELLED: (AuditState.CANCELLED,),
}
TABLE: Final[Mapping[AuditState, Row]] = {
    state: row._replace(moves={**row.moves, **_WHILE_IT_RUNS}) if state in RUNNING else row
    for state, row in _ROWS.items()
}


def transitions() -> Iterator[Transition]:
    """Every move that the table allows."""
    for before, row in TABLE.items():
        for cause, afters in row.moves.items():
            for after in afters:
                yield Transition(before, cause, after)


@cache
def before(cause: Cause, after: AuditState) -> tuple[AuditState, ...]:
    """The states that a cause takes to another.

    Raises:
        ValueError: there is none: the table knows no such move.
    """
    found = tuple(move.before for move in transitions() if (move.cause, move.after) == (cause, after))
    if not found:
        raise ValueError(f"nothing becomes {after.value} on {cause.value}: proctor.router.states has no such move")
    return found
