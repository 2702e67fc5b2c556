"""Where this environment has the real model and the servers of it that `make models` sets up, and which are missing.

They are for trying Proctor on what people serve: a small model that was trained on text, behind llama.cpp, vLLM and
Triton's vLLM backend. Nothing of them is imported here: they have an environment of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from proctor.localstack.triton_server import obstacle, python_version

#: What the model is called, and how servers are told to call it.
MODEL: Final = "SmolLM2-135M-Instruct"
SERVED_NAME: Final = "smollm2"
SETUP_HINT: Final = "make models"


class Part(StrEnum):
    """What is set up, each by a step of its own."""

    ENVIRONMENT = "environment"
    """vLLM, llama.cpp and transformers."""
    WEIGHTS = "weights"
    """The model, quantised for llama.cpp and as bf16 for vLLM."""
    BACKEND = "backend"
    """Triton's vLLM backend."""


class RealModels(NamedTuple):
    """The folder of all of it."""

    root: Path

    @classmethod
    def here(cls) -> RealModels:
        """That of this environment."""
        return cls(Path(sys.prefix) / "models")

    def stamp(self, part: Part) -> Path:
        """The file that says what a part was made of, written when all of it was there."""
        return self.root / part / "installed.json"

    def installed(self, part: Part) -> Mapping[str, str] | None:
        """What a part was made of; None where it is not there, or for another version of Python."""
        try:
            stamp = json.loads(self.stamp(part).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return stamp if isinstance(stamp, dict) and stamp.get("python") == python_version() else None

    def lacking(self, *parts: Part) -> str | None:
        """Why what needs these parts cannot be started, in one line with the mend; None where it can."""
        absent = [str(part) for part in parts if self.installed(part) is None]
        if absent:
            return f"{', '.join(absent)} not set up in {self.root}; run: {SETUP_HINT}"
        return obstacle() if Part.BACKEND in parts else None
