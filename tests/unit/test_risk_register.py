"""What is published of public benchmarks' exposure is found by whatever name, and shown with its source."""

from __future__ import annotations

import json

import pytest

from proctor.cli.main import main
from proctor.domain.risk_register import REGISTER, known_exposure


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [("gsm8k", "GSM8K"), ("openai/gsm8k", "GSM8K"), ("Human_Eval", "HumanEval"), ("cais/mmlu", "MMLU")],
)
def test_a_benchmark_is_found_by_whatever_name(name: str, benchmark: str) -> None:
    assert [one.benchmark for one in known_exposure(name)] == [benchmark]


@pytest.mark.parametrize("name", ["", "mmlu-pro", "gsm", "my-own"])
def test_another_benchmark_is_not_taken_for_it(name: str) -> None:
    assert known_exposure(name) == ()


def test_every_figure_has_its_method_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "risk"]) == 0
    said = capsys.readouterr().out
    assert all(one.exposed in said and one.method in said and one.source in said for one in REGISTER)
    assert main(["dataset", "risk", "gsm8k", "--format", "json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    assert (one["exposed"], one["method"]) == ("10-20 %", "question fingerprinting")


def test_nothing_known_is_no_sign_of_nothing_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "risk", "my-own"]) == 0
    assert "no sign that it did not leak" in capsys.readouterr().out
