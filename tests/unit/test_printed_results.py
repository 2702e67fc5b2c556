"""What the commands print of audits that have ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from proctor.cli.audits.auditing import AuditResult
from proctor.cli.audits.results import print_results

ROW: dict[str, Any] = {
    "model": "m", "decision": "review", "accuracy_canonical": 0.03, "accuracy_perturbed": 0.0,
    "score_inflation_points": 2.6, "score_inflation_points_ci": [-1.0, 7.0],
    "contamination_score": 1.0, "contamination_score_ci": [None, None], "p_value": 0.16,
    "above_chance": True, "scope_caveat": None, "reasons": ["It is so."], "harder_wordings": None,
    "sequential": None, "weights": None, "report_path": "report.html",
}  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    result = SimpleNamespace(summary=lambda: {**ROW, **changes}, printed_by_channels=list)
    print_results([cast(AuditResult, result)])
    return capsys.readouterr().out


def test_of_a_model_that_answers_no_better_than_chance_no_score_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "1.000" in printed(capsys)
    said = printed(capsys, above_chance=False)
    assert "1.000" not in said
    assert "0.16" not in said
    assert "3.0 %" in said


def test_where_a_sequential_audit_ended_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = {"look": 2, "looks": 9, "items_asked": 150, "items_planned": 500, "stop": "blocked"}
    assert "asked 150 of at most 500 items: ended at look 2 of 9 (blocked)" in printed(capsys, sequential=stopped)
    assert "at most" not in printed(capsys)
