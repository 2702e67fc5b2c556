"""What the steps of `make models` share: how they run a program, and how they note that they are done."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from proctor.localstack.real_models import Part, RealModels
from proctor.localstack.triton_server import python_version

REPOSITORY: Final = Path(__file__).resolve().parents[2]


class SetupError(Exception):
    """A step cannot be done: what was wrong, and what to do."""


class Step(NamedTuple):
    """One part of what is set up."""

    part: Part
    does: str
    made_of: Mapping[str, str]
    """What its stamp says; a part with another stamp is made anew."""
    make: Callable[[RealModels], Mapping[str, str]]
    """Makes it, and returns what the stamp says besides."""


def take(step: Step, models: RealModels) -> bool:
    """Take a step unless it was taken; whether there was anything to do. A part that is half there is made again.

    Raises:
        SetupError: it cannot be taken.
    """
    found = models.installed(step.part)
    if found is not None and step.made_of.items() <= found.items():
        return False
    models.stamp(step.part).unlink(missing_ok=True)
    (models.root / step.part).mkdir(parents=True, exist_ok=True)
    said = step.make(models)
    stamp = {"python": python_version(), **step.made_of, **said}
    temporary = models.stamp(step.part).with_suffix(".tmp")
    temporary.write_text(json.dumps(stamp, indent=1) + "\n", "utf-8")
    temporary.rename(models.stamp(step.part))
    return True


def run(argv: Sequence[str | Path], *, what: str, env: Mapping[str, str] | None = None) -> None:
    """Run a program whose progress is shown.

    Raises:
        SetupError: it did not end well.
    """
    status = subprocess.run([str(one) for one in argv], env=env).returncode
    if status != 0:
        raise SetupError(f"{what} ended with {status}; what it said stands above. Run `make models` again to go on")


def pip(*arguments: str | Path, python: Path | None = None) -> list[str | Path]:
    """A command of this environment's pip, for it or for the environment of another interpreter."""
    command: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    return [*command, *(("--python", python) if python is not None else ()), *arguments]


def room_for(models: RealModels, needed_bytes: int) -> None:
    """Raises SetupError: the disk is too full for what is to be set up."""
    models.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(models.root).free
    if free < needed_bytes:
        raise SetupError(
            f"{models.root} has {free / 1e9:.1f} GB free, and {needed_bytes / 1e9:.1f} are needed; make room there"
        )
