"""What is published of public benchmarks' exposure is found by whatever name, and shown with its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.domain.risk_register import NO_SIGN, REGISTER, exposure_of_dataset, known_exposure, published
from proctor.domain.suite_schema import example_suite
from proctor.scorer.page.html import render
from proctor.scorer.report.document import RunFacts
from tests.report_samples import SampleAudit


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [("gsm8k", "GSM8K"), ("openai/gsm8k", "GSM8K"), ("Human_Eval", "HumanEval"), ("cais/mmlu", "MMLU")],
)
def test_a_benchmark_is_found_by_whatever_name(name: str, benchmark: str) -> None:
    assert [one.benchmark for one in known_exposure(name)] == [benchmark]


@pytest.mark.parametrize(
    ("name", "hub_id", "benchmark"),
    [
        ("my copy", "openai/openai_humaneval", "HumanEval"),
        ("my copy", "cais/mmlu", "MMLU"),
        ("grade-school-math", None, "GSM8K"),
        ("codeforces", "open-r1/codeforces", "CodeForces"),
        ("mine", "somebody/mine", None),
        ("mine", None, None),
    ],
)
def test_a_suites_benchmark_is_found_by_its_name_or_its_place_on_the_hub(
    name: str, hub_id: str | None, benchmark: str | None
) -> None:
    assert [one.benchmark for one in exposure_of_dataset(name, hub_id)] == ([benchmark] if benchmark else [])


def suite_file(folder: Path, benchmark: str) -> Path:
    document = example_suite()
    document["dataset_config"] |= {"benchmark_name": benchmark, "path": "items.jsonl"}
    document["perturbation_config"] = {"perturbation_strategy": "lexical"}
    path = folder / "suite.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    rows = [{"id": f"i{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(40)]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", [("suite", "validate"), ("audit", "plan")])
def test_a_suite_that_uses_such_a_benchmark_is_told_what_is_published_of_it(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(suite_file(tmp_path, "gsm8k"))
    assert main([*command, path]) == 0
    said = capsys.readouterr().out
    assert "Published of GSM8K: exposed: 10-20 %; scores: +3-8 points; looked for by question fingerprinting" in said
    assert "moves no decision" in said
    assert NO_SIGN in said
    assert main([*command, path, "--format", "json"]) == 0
    assert [one["benchmark"] for one in json.loads(capsys.readouterr().out)["known_exposure"]] == ["GSM8K"]


@pytest.mark.parametrize("command", [("suite", "validate"), ("audit", "plan")])
def test_of_another_benchmark_nothing_is_said(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(suite_file(tmp_path, "mine"))
    assert main([*command, path]) == 0
    assert "Published of" not in capsys.readouterr().out
    assert main([*command, path, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["known_exposure"] == []


def test_the_report_says_it_among_its_limits_and_decides_the_same() -> None:
    listed = SampleAudit(n_items=60, changes={"dataset_config": {"benchmark_name": "GSM8K"}}).report()
    other = SampleAudit(n_items=60, changes={"dataset_config": {"benchmark_name": "GSM9K"}}).report()
    (told,) = [limit.text for limit in listed.limits if limit.code == "known_exposure"]
    assert told == published(known_exposure("gsm8k")[0])
    assert [limit for limit in listed.limits if limit.code != "known_exposure"] == list(other.limits)
    assert listed.decision.outcome is other.decision.outcome
    assert listed.decision.reasons == other.decision.reasons
    page = render(listed, run=RunFacts())
    assert 'id="limit-known_exposure"' in page
    assert "10-20 %; scores: +3-8 points" in page
    assert "read in 2026). That is" in page


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
