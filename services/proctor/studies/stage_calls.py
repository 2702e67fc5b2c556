"""How often the stages of plug-ins will ask, for the plan of an audit."""

from __future__ import annotations

from proctor.domain.suite import Suite
from proctor.router.stages.registry import STAGES, stages_with
from proctor.router.stages.stage import Stage


def stage_calls(suite: Suite, items: int) -> int:
    """Prompts of the stages that the suite asks for, as far as they say it; 0 where it asks for none.

    Raises:
        BadInputError: when one of them is not installed here, or cannot be loaded.
    """
    return sum(stage.calls(items) or 0 for stage in _stages(suite))


def stage_notes(suite: Suite, items: int) -> tuple[str, ...]:
    """What each stage that the suite asks for comes to, in a sentence. Raises as `stage_calls`."""
    return tuple(_note(stage, items) for stage in _stages(suite))


def _stages(suite: Suite) -> list[Stage]:
    named = suite.protocol.stages
    return [stage for stage in stages_with(named) if stage.kind in named]


def _note(stage: Stage, items: int) -> str:
    calls = stage.calls(items)
    prompts = "prompts whose number only the audit will tell" if calls is None else f"{calls:,} prompts"
    return (
        f"before the answers the stage {stage.kind} of {STAGES.origin(stage.kind)} asks {prompts} for "
        f"{stage.asked_for}, which are not counted in the table"
    )
