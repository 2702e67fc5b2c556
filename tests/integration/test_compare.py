"""`proctor compare` on real logs, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.comparing import compare_logs
from tests.support import shared_data


def proctor(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from proctor.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, "compare", *map(str, arguments)],
        env={**os.environ, "PROCTOR_HOME": str(home)},
        capture_output=True,
        text=True,
    )


def case_study() -> tuple[Path, Path]:
    folder = shared_data() / "case_study"
    return folder / "winner_max_new768.json", folder / "instruct_max_new768.json"


def lm_eval_logs() -> tuple[Path, Path]:
    folder = shared_data() / "lm_eval_logs"
    return folder / "winner.jsonl", folder / "instruct.jsonl"


def test_the_case_study_gives_the_known_figures(tmp_path: Path) -> None:
    run = proctor(*case_study(), "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["n"], found["only_a"], found["only_b"]) == (199, 27, 29)
    assert (found["n_a_correct"], found["n_b_correct"], found["both"], found["neither"]) == (135, 137, 108, 35)
    assert round(found["p_value"], 4) == 0.8939
    assert [round(bound, 4) for bound in found["accuracy_a_ci"]] == [0.6106, 0.7394]
    assert found["excluded"][0]["id"] == "gsm8k-131"
    assert "error row" in found["excluded"][0]["reason"]
    assert found["verdict"] == "inconclusive"
    assert "by_extractor" not in found


def test_two_filters_of_one_pair_of_logs_conclude_the_opposite(tmp_path: Path) -> None:
    run = proctor(*lm_eval_logs(), "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    verdicts = {name: one["verdict"] for name, one in found["by_extractor"].items()}
    assert verdicts == {"strict-match": "a_better", "flexible-extract": "b_better"}
    assert found["verdict"] == "extractor_decides"
    assert "extractor decides" in found["conclusion"]
    assert found["extractor"] == "strict-match"
    assert found["unread_b"] == 194
    assert "194 of B's" in found["conclusion"]
    assert found["paired_by_content"] == found["n"] == 200


def test_the_table_says_the_same_as_the_json(tmp_path: Path) -> None:
    run = proctor(*case_study(), "--tolerance", "12", home=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "0.8939" in run.stdout
    assert "gsm8k-131: error row in A: OverflowError" in run.stdout
    assert "equivalent within 12 points" in run.stdout


def cut_short(path: Path, target: Path, characters: int) -> Path:
    """The same run with texts cut at a limit: longer ones lose their answer and their end."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for row in document["results"]:
        if "error" in row:
            continue
        whole = len(row["gen_text"]) <= characters
        row["finish_reason"] = "stop" if whole else "length"
        row["gen_text"] = row["gen_text"][:characters]
        row["correct"] = row["correct"] and whole
    target.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return target


def test_a_run_cut_at_a_token_limit_is_invalid_for_comparison(tmp_path: Path) -> None:
    winner, instruct = case_study()
    whole, cut = cut_short(winner, tmp_path / "whole.json", 10**6), cut_short(instruct, tmp_path / "cut.json", 900)
    result = compare_logs(whole, cut)
    assert result.verdict == "invalid"
    assert result.primary.p_value < 0.05
    assert "truncation" in result.conclusion
    both = compare_logs(cut_short(winner, tmp_path / "whole_b.json", 10**6), whole)
    assert both.verdict != "invalid"


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("id,correct\nzebra,1\n", (), "no common items"),
        ("id,correct\ngsm8k-000,1\ngsm8k-000,1\n", (), ":3: the id 'gsm8k-000' stands twice"),
        ("id\ngsm8k-000\n", (), "log is"),
        ("", (), ":1: the file is empty"),
        ("id,correct\ngsm8k-000,nan\n", (), ":2: correct is nan"),
        ("id,correct\ngsm8k-000,1\ngsm8k-001,100\n", (), ":3: scores on two scales"),
        ("id,correct\ngsm8k-000,1\n", ("--filter", "strict"), "'strict' is not in both logs"),
        ("id,correct\ngsm8k-000,1\n", ("--tolerance", "nan"), "tolerance nan"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    tmp_path: Path, content: str, options: tuple[str, ...], words: str
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("id,correct\ngsm8k-000,1\ngsm8k-001,0\n", encoding="utf-8")
    second.write_text(content, encoding="utf-8")
    run = proctor(first, second, *options, "--format", "json", home=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_the_same_seed_prints_the_same_bytes(tmp_path: Path) -> None:
    first, second = (proctor(*lm_eval_logs(), "--seed", "5", "--format", "json", home=tmp_path) for _ in range(2))
    assert first.stdout == second.stdout != ""
