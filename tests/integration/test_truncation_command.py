"""`proctor truncation` on real logs, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.studies.truncation import as_json, audit_truncation
from tests.support import case_study, run_proctor, shared_data


def cut_short(path: Path, target: Path, characters: int, *, reasons: bool) -> Path:
    """The same run with texts cut at a limit; with `reasons` its log says which."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for row in document["results"]:
        if "error" in row:
            continue
        whole = len(row["gen_text"]) <= characters
        if reasons:
            row["finish_reason"] = "stop" if whole else "length"
        row["gen_text"] = row["gen_text"][:characters]
        row["correct"] = row["correct"] and whole
    target.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return target


def csv_log(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["id,correct,tokens", *rows]) + "\n", encoding="utf-8")
    return path


def test_the_case_study_names_its_guess_and_sorts_the_wrong_answers(tmp_path: Path) -> None:
    winner, instruct = case_study()
    run = run_proctor("truncation", winner, "--against", instruct, "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert {"arms", "difference", "p_value", "verdict"} <= set(found)
    assert all({"n", "truncated", "rate", "rate_ci", "basis"} <= set(arm) for arm in found["arms"])
    assert [arm["basis"] for arm in found["arms"]] == ["text", "text"]
    assert found["verdict"] == "inconclusive"
    assert "guess" in found["conclusion"]
    counts = [arm["triage"]["counts"] for arm in found["arms"]]
    assert [(one["extraction"], one["stepwise"], one["reasoning"]) for one in counts] == [(1, 4, 59), (5, 2, 55)]
    assert found["arms"][0]["triage"]["items"]["stepwise"] == ["gsm8k-011", "gsm8k-067", "gsm8k-094", "gsm8k-197"]
    assert [arm["error"]["count"] for arm in found["arms"]] == [1, 0]


def test_a_short_limit_makes_the_comparison_invalid_and_is_seen_among_wrong_answers(tmp_path: Path) -> None:
    winner, instruct = case_study()
    whole = cut_short(winner, tmp_path / "whole.json", 10**6, reasons=True)
    cut = cut_short(instruct, tmp_path / "cut.json", 900, reasons=True)
    found = as_json(audit_truncation(whole, cut))
    assert found["verdict"] == "invalid"
    assert found["difference"] < -0.3
    assert found["p_value"] < 1e-6
    arm = found["arms"][1]
    assert arm["basis"] == "finish_reason"
    assert arm["accuracy_low"] < 0.6 < arm["accuracy_high"]
    assert arm["triage"]["counts"]["truncated"] > 60
    assert arm["triage"]["guessed_cuts"] is False


def test_runs_of_different_limits_are_not_refused_and_what_differs_is_listed(tmp_path: Path) -> None:
    rows = "id,correct,tokens,max_tokens\na,1,5,{0}\nb,0,9,{0}\n"
    for name, limit in (("short.csv", 9), ("long.csv", 64)):
        (tmp_path / name).write_text(rows.format(limit), encoding="utf-8")
    run = run_proctor("truncation", tmp_path / "short.csv", "--against", tmp_path / "long.csv", home=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "differs: decoding_policy.max_tokens is 9 in A and 64 in B" in run.stdout
    found = as_json(audit_truncation(tmp_path / "short.csv", tmp_path / "long.csv"))
    assert found["protocol"]["differs"] == [{"field": "decoding_policy.max_tokens", "a": 9, "b": 64}]
    assert "protocol" not in as_json(audit_truncation(tmp_path / "short.csv"))


def test_two_whole_runs_are_clean(tmp_path: Path) -> None:
    runs = [cut_short(path, tmp_path / path.name, 10**6, reasons=True) for path in case_study()]
    assert audit_truncation(*runs).evidence.verdict == "clean"
    assert audit_truncation(runs[0]).evidence.verdict == "clean"


def test_a_guess_from_cut_texts_suspects_and_does_not_conclude(tmp_path: Path) -> None:
    winner, instruct = case_study()
    cut = cut_short(instruct, tmp_path / "cut.json", 700, reasons=False)
    evidence = audit_truncation(winner, cut).evidence
    assert evidence.verdict == "inconclusive"
    assert evidence.arms[1].truncated > 20
    assert "suspected" in evidence.conclusion


def test_the_token_limit_comes_from_the_command_line(tmp_path: Path) -> None:
    log = csv_log(tmp_path / "log.csv", [f"i{i},{int(i % 2 == 0)},{300 if i < 30 else 100 + i}" for i in range(100)])
    run = run_proctor("truncation", log, "--token-limit", "300", "--format", "json", home=tmp_path)
    arm = json.loads(run.stdout)["arms"][0]
    assert (arm["basis"], arm["n"], arm["truncated"], arm["token_limit"]) == ("tokens", 100, 30, 300)
    assert (arm["accuracy_low"], arm["accuracy_high"]) == (0.5, 0.65)
    unknown = run_proctor("truncation", log, "--format", "json", home=tmp_path)
    assert json.loads(unknown.stdout)["verdict"] == "not_audited"


def test_runs_with_limits_of_their_own_are_each_judged_by_theirs(tmp_path: Path) -> None:
    rows = [f"i{i},1,{300 if i < 30 else 100}" for i in range(200)]
    a, b = csv_log(tmp_path / "a.csv", rows), csv_log(tmp_path / "b.csv", rows)
    evidence = audit_truncation(a, b, token_limit=300, token_limit_against=512).evidence
    assert [arm.truncated for arm in evidence.arms] == [30, 0]
    assert evidence.verdict == "invalid"


def test_an_extractor_that_reads_one_run_alone_makes_the_comparison_invalid(tmp_path: Path) -> None:
    folder = shared_data() / "lm_eval_logs"
    found = as_json(audit_truncation(folder / "winner.jsonl", folder / "instruct.jsonl"))
    assert found["verdict"] == "invalid"
    assert "could read" in found["conclusion"]
    assert found["arms"][1]["unreadable"]["count"] == 194
    assert found["arms"][1]["triage"]["counts"]["extraction"] == 140


def test_several_samples_an_item_give_the_lottery_rate(tmp_path: Path) -> None:
    log = tmp_path / "samples.jsonl"
    samples = {0: ["#### 5"] * 5, 1: ["#### 4", "#### 5", "#### 5", "#### 5", "#### 9"], 2: ["#### 4"] * 5}
    log.write_text(
        "\n".join(
            json.dumps(
                {
                    "doc_id": number,
                    "doc": {"question": "2 + 3?"},
                    "target": "#### 5",
                    "resps": [texts],
                    "filtered_resps": [texts[0].removeprefix("#### ")],
                    "filter": "strict",
                    "metrics": ["exact_match"],
                    "exact_match": float(texts[0] == "#### 5"),
                }
            )
            for number, texts in samples.items()
        ),
        encoding="utf-8",
    )
    found = as_json(audit_truncation(log))["arms"][0]["lottery"]
    assert (found["greedy_wrong"], found["rescued"], found["k"]) == (2, 1, 4)


def test_the_table_says_the_same_in_words(tmp_path: Path) -> None:
    winner, instruct = case_study()
    whole = cut_short(winner, tmp_path / "whole.json", 10**6, reasons=True)
    cut = cut_short(instruct, tmp_path / "cut.json", 900, reasons=True)
    run = run_proctor("truncation", whole, "--against", cut, home=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "These runs cannot be compared" in run.stdout
    assert "cut before an answer" in run.stdout
    assert "finish reasons" in run.stdout


def test_hostile_words_of_a_log_reach_the_terminal_harmless(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,correct,expected,text\n\x1b]0;owned\x07evil,0,5,#### 5\n", encoding="utf-8")
    run = run_proctor("truncation", log, home=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "\x1b" not in run.stdout
    assert "\x07" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a.csv", "--token-limit", "0"), "token limit 0"),
        (("a.csv", "--filter", "strict"), "'strict' is not in"),
        (("a.csv", "--against", "b.csv"), "no common items"),
        (("missing.csv",), "missing.csv"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    csv_log(tmp_path / "a.csv", ["x,1,5"])
    csv_log(tmp_path / "b.csv", ["y,1,5"])
    run = run_proctor(
        "truncation",
        *(tmp_path / name if name.endswith(".csv") else name for name in arguments),
        "--format",
        "json",
        home=tmp_path,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1
