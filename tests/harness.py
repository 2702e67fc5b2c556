"""Where lm-evaluation-harness is: in an environment over this one, because it brings what Triton's stub cannot load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.support import missing

_PYTHON: Final = Path(sys.prefix) / "harness" / "bin" / "python"


def harness_python() -> Path:
    """The Python that has it; whoever asks where it is not is skipped, and fails in CI."""
    if not _PYTHON.exists():
        missing("lm-evaluation-harness is not installed: scripts/setup_harness.sh")
    return _PYTHON
