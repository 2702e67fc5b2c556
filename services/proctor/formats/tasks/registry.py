"""The harnesses for which tasks are written, by the names that a command takes."""

from __future__ import annotations

from typing import Final

from proctor.formats.tasks.inspect_task import INSPECT
from proctor.formats.tasks.lm_eval_task import LM_EVAL
from proctor.formats.tasks.task import TaskFormat

TASK_FORMATS: Final[dict[str, TaskFormat]] = {"lm-eval": LM_EVAL, "inspect": INSPECT}
