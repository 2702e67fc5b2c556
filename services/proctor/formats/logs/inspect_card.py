"""The protocol card of a log of Inspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from proctor.domain.recorded_card import RecordedCard, recorded_card
from proctor.domain.run_log import AskedWith
from proctor.formats.logs.recorded import ENGINES, fields_of_settings, shortened

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

_PACKAGE: Final = "inspect_ai"


def card_of_inspect(log: EvalLog, settings: Mapping[str, Any]) -> RecordedCard:
    """What the log's head records, with the settings of its model calls.

    A commit says which sources lay there and not what in them changed, so it is the run's; the task's own version is
    the protocol's.
    """
    spec = log.eval
    engine = spec.model.partition("/")[0]
    steps = [step for step in (*log.plan.steps, log.plan.finish) if step is not None]
    protocol: dict[str, Any] = {
        "task_set.task": spec.task,
        "task_set.version": shortened(spec.task_version),
        "task_set.dataset": spec.dataset.name,
        "evaluator.version": shortened(spec.packages.get(_PACKAGE)),
        "evaluator.engine": engine if engine in ENGINES else None,
        "task_set.task_args": spec.task_args or None,
    }
    protocol = {field: value for field, value in protocol.items() if value is not None}
    if steps:
        protocol["prompt_template.solvers"] = [{"solver": step.solver, **step.params} for step in steps]
    subject: dict[str, Any] = {"model": spec.model, "model_args": spec.model_args or None}
    if spec.revision is not None:
        subject["commit"] = spec.revision.commit
    return recorded_card(
        {**protocol, **fields_of_settings([AskedWith(1, settings)]), "evaluator.name": _PACKAGE},
        {name: value for name, value in subject.items() if value is not None},
    )
