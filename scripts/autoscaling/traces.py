"""What is asked for over a day: audits with their stages, drawn from a seed or read from JSON lines.

A line is an audit: `{"at_s": 32400, "audit": "a-7", "stages": [{"stage": "answer", "trials": 2000, "output_tokens":
200, "before_s": 20}]}`. `before_s` is what other services take before the stage is planned, as rewording does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proctor.domain.errors import BadInputError

DAY_S: Final = 86_400.0
_HOUR_S: Final = 3_600.0


class AskedStage(BaseModel):
    """A stage that asks the pool's model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str = "answer"
    trials: int = Field(gt=0)
    output_tokens: float = Field(gt=0)
    """Of a trial, on average."""
    input_tokens: float = Field(default=0.0, ge=0)
    before_s: float = Field(default=0.0, ge=0)
    trials_an_item: int = Field(default=4, gt=0)
    """How many of them a part of 1,024 items is planned with."""


class AskedAudit(BaseModel):
    """An audit and when it is submitted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_s: float = Field(ge=0)
    audit: str
    stages: tuple[AskedStage, ...] = Field(min_length=1)

    @property
    def trials(self) -> int:
        """Of all stages."""
        return sum(stage.trials for stage in self.stages)


def read_trace(path: Path) -> list[AskedAudit]:
    """A recorded trace, in the order of its times.

    Raises:
        BadInputError: with the file's line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: {error}") from None
    audits = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                audits.append(AskedAudit.model_validate_json(line))
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"])) or "the line"
                raise BadInputError(f"{path}:{number}: {where}: {first['msg']}") from None
    if not audits:
        raise BadInputError(f"{path}: no audit")
    return sorted(audits, key=lambda audit: (audit.at_s, audit.audit))


def as_lines(audits: Iterable[AskedAudit]) -> str:
    """A trace as JSON lines."""
    return "".join(audit.model_dump_json() + "\n" for audit in audits)


@dataclass(frozen=True)
class Habits:
    """Of whom a trace is drawn."""

    by_day: int
    """Audits from 8 to 19 o'clock, when models are registered: most at 11 and at 15."""
    by_night: int
    """Scheduled audits, all of them within ten minutes of 2 o'clock."""
    items: tuple[int, ...]
    """Sizes of benchmarks, drawn equally often."""
    variants: int = 3
    rewording_share: float = 0.3
    """Audits whose rewordings a model writes; the others' are in the library."""


HABITS: Final = {
    "team": Habits(by_day=36, by_night=12, items=(198, 500, 1_172, 1_319)),
    "fleet": Habits(by_day=600, by_night=200, items=(500, 1_319, 2_000, 5_000, 14_042)),
}


def draw_trace(habits: Habits, *, seed: int) -> list[AskedAudit]:
    """A day. The same seed gives the same one."""
    rng = np.random.default_rng(seed)
    hours = rng.choice([11.0, 15.0], habits.by_day) + rng.normal(0, 1.6, habits.by_day)
    by_day = np.clip(hours, 8, 19) * _HOUR_S
    by_night = 2 * _HOUR_S + rng.uniform(0, 600, habits.by_night)
    times = np.sort(np.concatenate([by_night, by_day]))
    return [_audit(rng, habits, number, float(at_s)) for number, at_s in enumerate(times)]


def _audit(rng: np.random.Generator, habits: Habits, number: int, at_s: float) -> AskedAudit:
    items = int(rng.choice(habits.items))
    # Some reason at length, most answer in a paragraph.
    tokens = float(np.clip(rng.lognormal(np.log(200), 0.6), 8, 2_048))
    stages = list[AskedStage]()
    if rng.random() < habits.rewording_share:
        asked = items * habits.variants
        stages.append(AskedStage(stage="paraphrase-1", trials=asked, output_tokens=80, before_s=5, trials_an_item=1))
    stages.append(
        AskedStage(
            stage="answer",
            trials=items * (1 + habits.variants),
            output_tokens=round(tokens, 1),
            # Rewordings are measured at some hundred a second (docs/speed.md and docs/perturbation.md).
            before_s=round(items * habits.variants / 150, 1),
            trials_an_item=1 + habits.variants,
        )
    )
    return AskedAudit(at_s=round(at_s, 1), audit=f"audit-{number:05d}", stages=tuple(stages))


def total_trials(audits: Sequence[AskedAudit]) -> int:
    """Of all audits."""
    return sum(audit.trials for audit in audits)
