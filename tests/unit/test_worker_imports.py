"""What a worker imports before its first message: a pool that scales from nothing waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import importlib, sys
from proctor.runtime.messaging import probes
for module in ("proctor.cli.worker", f"proctor.{sys.argv[1]}.tasks"):
    importlib.import_module(module)
print(*sorted(set(sys.argv[2:]) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("service", "needless"),
    [
        ("inference", ("sqlalchemy", "numpy", "scipy", "torch")),
        ("router", ("numpy", "scipy", "torch")),
        ("registry", ("numpy", "scipy", "torch")),
        ("scorer", ("torch",)),
        ("perturbation", ("torch",)),
    ],
)
def test_a_worker_does_not_import_what_it_has_no_use_for(service: str, needless: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", _PROGRAM, service, *needless]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    assert ran.stdout.split() == []
