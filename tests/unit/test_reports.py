"""Reports of tests travel from a worker, whatever is in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.reports import travelling
from tests.support import REPOSITORY

_FAILING = """
import logging

def test_what_fails_with_half_of_a_pair():
    logging.getLogger("hostile").warning("half: %s", "\\ud83d")
    raise ValueError("\\ud83d")

def test_what_passes():
    pass
"""


def test_a_failure_with_a_lone_surrogate_is_a_failure_and_does_not_end_the_session(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_report_to_serializable\n", "utf-8")
    (tmp_path / "test_hostile.py").write_text(_FAILING, "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "CI": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout
    assert "INTERNALERROR" not in ran.stdout


def test_only_what_has_no_utf_8_is_escaped() -> None:
    assert travelling({"a": ["é\ud83d🙂", ("b", 1.5, None)], "\udc80": b"c"}) == {
        "a": ["é\\ud83d🙂", ("b", 1.5, None)],
        "\\udc80": b"c",
    }
