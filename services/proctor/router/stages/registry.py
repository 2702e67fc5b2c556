"""Which stages there are, which of them an audit has, and which one it is in."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from proctor.domain.errors import PluginError
from proctor.domain.plugins import ExtensionPoint
from proctor.domain.routing import STAGES_GROUP
from proctor.domain.trial import ANSWER_STAGE
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs
from proctor.router.stages.stage import Stage, StageUnderWay
from proctor.runtime.records.audit_state import AuditState

#: Every stage by its kind.
STAGES: Final = ExtensionPoint(
    STAGES_GROUP,
    "stage",
    Stage,
    {
        "paraphrase": "proctor.router.stages.paraphrase:PARAPHRASE",
        "check": "proctor.router.stages.check:CHECK",
        "transmit": "proctor.router.stages.transmit:TRANSMIT",
        "answer": "proctor.router.stages.answer:ANSWER",
    },
)


@lru_cache(maxsize=64)
def stages_with(plugins: tuple[str, ...]) -> tuple[Stage, ...]:
    """The stages of an audit whose suite asks for these of plug-ins, in the order in which they may be due.

    Raises:
        PluginError: when one of them is not installed here, cannot be loaded, or is no stage of a plug-in.
    """
    *before, last = (STAGES.get(kind) for kind in STAGES.built_in)
    further = [STAGES.get(kind) for kind in plugins]
    for kind, stage in zip(plugins, further, strict=True):
        if stage.kind != kind or stage.state is not AuditState.ASKING:
            raise PluginError(
                f"the stage {kind!r} of {STAGES.origin(kind)} has the kind {stage.kind!r} and the state "
                f"{stage.state.value!r}, so that no suite can ask for it",
                f"have it say {kind!r} and {AuditState.ASKING.value!r}",
            )
    return (*before, *further, last)


def stage_of(name: str) -> Stage:
    """A stage by its kind, or by the ledger's name of it, e.g. `paraphrase-2`.

    Raises:
        PluginError: when there is none of that kind here.
    """
    return STAGES.get(name.partition("-")[0])


def which_of(stage: Stage, name: str) -> int:
    """Which of the models of its role a stage asks under the ledger's name of it, from 0."""
    return int(name.split("-")[1]) - 1 if stage.asks_several else 0


def due(audit: AuditView) -> Stage | None:
    """The stage that an audit goes on with; None where it is to be reworded first.

    What was reworded, and what is being asked, is on record. It is not worked out anew: the variant library may hold
    more by now, and the answers that are in the ledger belong to the variants that were made then.
    """
    for stage in stages_with(audit.suite.protocol.stages):
        if stage.is_due(audit):
            return stage
    return None


def state_to_go_on_in(audit: AuditView) -> AuditState:
    """Where an audit goes on once its endpoint has answered the probe, or a stage has ended."""
    stage = due(audit)
    return AuditState.REWORDING if stage is None else stage.state


def under_way(audit: AuditView) -> StageUnderWay | None:
    """The stage whose shards are handed out now; None in a state in which no model is asked."""
    stage = due(audit)
    if stage is None or stage.state is not audit.record.state:
        return None
    model, endpoint, decoding = stage.model(audit), stage.endpoint(audit), stage.decoding(audit)
    return StageUnderWay(stage, stage.name(audit.inputs), model, endpoint, decoding)


def ledger_stage(audit: AuditView) -> str | None:
    """The ledger's stage that an audit is in, or would go on with; None while it has none."""
    stage = due(audit)
    return None if stage is None else stage.name(audit.inputs)


def stages_so_far(audit: AuditView, stage: str) -> tuple[str, ...]:
    """The ledger's stages that have a stage's trials so far: itself, and those before earlier looks."""
    if not audit.inputs.looks or stage_of(stage).kind != ANSWER_STAGE:
        return (stage,)
    return tuple(f"{ANSWER_STAGE}-{number}" for number in range(1, len(audit.inputs.looked) + 2))


def pool_of(inputs: AuditInputs, stage: str) -> str | None:
    """The pool of servers that a stage asks, by the ledger's name of it; None where there is no such stage here."""
    try:
        found = stage_of(stage)
    except PluginError:
        return None
    endpoint = inputs.endpoint_of(found.asks, which_of(found, stage))
    return None if endpoint is None else endpoint.pool
