"""The next version that the chaos tests upgrade to is this one with lines laid into it: each must find its place."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.chaos.upgrade import next_version


def test_every_line_of_the_next_version_finds_its_place_in_this_one(tmp_path: Path) -> None:
    # In a moment here, and not only after minutes of `make faults`.
    package = next_version(tmp_path / "next") / "proctor"
    for module in ("domain/messages.py", "router/inputs.py", "router/tasks.py", "runtime/records/store.py"):
        ast.parse((package / module).read_text("utf-8"))
