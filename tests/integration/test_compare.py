"""`proctor compare` on real logs, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proctor.domain.errors import BadInputError
from proctor.evidence.paired.results import ProtocolsDifferError
from proctor.studies.comparison import as_json, compare_logs
from tests.support import case_study, run_proctor, shared_data


def lm_eval_logs() -> tuple[Path, Path]:
    folder = shared_data() / "lm_eval_logs"
    return folder / "winner.jsonl", folder / "instruct.jsonl"


def test_the_case_study_gives_the_known_figures(tmp_path: Path) -> None:
    run = run_proctor("compare", *case_study(), "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["n"], found["only_a"], found["only_b"]) == (199, 27, 29)
    assert (found["n_a_correct"], found["n_b_correct"], found["both"], found["neither"]) == (135, 137, 108, 35)
    assert round(found["p_value"], 4) == 0.8939
    assert [round(bound, 4) for bound in found["accuracy_a_ci"]] == [0.6106, 0.7394]
    assert found["excluded"][0]["id"] == "gsm8k-131"
    assert "error row" in found["excluded"][0]["reason"]
    assert found["verdict"] == "inconclusive"
    assert found["extractor"] == "as logged"


def test_the_texts_of_the_case_study_graded_again_conclude_the_same() -> None:
    found = as_json(compare_logs(*case_study()))
    votes = {
        name: (one["votes"], one["n"], one["only_a"], one["only_b"]) for name, one in found["by_extractor"].items()
    }
    assert votes == {
        "as logged": (True, 199, 27, 29),
        "proctor:numeric": (True, 199, 28, 29),
        "proctor:exact": (False, 199, 0, 0),
    }
    assert found["extractor_sensitivity"] == {
        "delta_lowest": -2 / 199,
        "delta_highest": -1 / 199,
        "verdicts": {"as logged": "inconclusive", "proctor:numeric": "inconclusive"},
    }
    assert "All 2 extractors agree (as logged, proctor:numeric)" in found["conclusion"]
    assert "Without a vote, because too few of these texts give it an answer: proctor:exact" in found["conclusion"]


def test_an_extractor_that_is_asked_for_comes_first(tmp_path: Path) -> None:
    run = run_proctor("compare", *lm_eval_logs(), "--extractor", "numeric", "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["extractor"], found["regraded"]) == ("proctor:numeric", True)
    assert (found["n"], found["n_a_correct"], found["n_b_correct"]) == (200, 136, 138)
    assert found["verdict"] == "extractor_decides"
    lowest, highest = (found["extractor_sensitivity"][end] for end in ("delta_lowest", "delta_highest"))
    assert (lowest, highest) == (found["by_extractor"]["flexible-extract"]["delta"], 0.56)
    assert "A − B runs from -10.5 to 56.0 points" in found["conclusion"]


def test_two_filters_of_one_pair_of_logs_conclude_the_opposite(tmp_path: Path) -> None:
    run = run_proctor("compare", *lm_eval_logs(), "--format", "json", home=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    verdicts = {name: one["verdict"] for name, one in found["by_extractor"].items()}
    assert verdicts == {
        "strict-match": "a_better",
        "flexible-extract": "b_better",
        "proctor:numeric": "inconclusive",
        "proctor:exact": "inconclusive",
    }
    assert [name for name, one in found["by_extractor"].items() if not one["votes"]] == ["proctor:exact"]
    assert found["verdict"] == "extractor_decides"
    assert "extractor decides" in found["conclusion"]
    assert found["extractor"] == "strict-match"
    assert found["unread_b"] == 194
    assert "194 of B's" in found["conclusion"]
    assert found["paired_by_content"] == found["n"] == 200


def test_the_table_says_the_same_as_the_json(tmp_path: Path) -> None:
    run = run_proctor("compare", *case_study(), "--tolerance", "12", home=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "0.8939" in run.stdout
    assert "gsm8k-131: error row in A: OverflowError" in run.stdout
    assert "equivalent within 12 points" in run.stdout


def by_tokens(path: Path, target: Path, limit: int) -> Path:
    """The same run with words counted for tokens and a limit in its metadata, and no finish reason."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    document["meta"]["max_new_tokens"] = limit
    for row in document["results"]:
        words = row.get("gen_text", "").split()
        row["tokens"] = min(len(words), limit)
        if len(words) >= limit and "error" not in row:
            row |= {"gen_text": " ".join(words[:limit]), "correct": False}
    target.write_text(json.dumps(document), encoding="utf-8")
    return target


def test_a_run_cut_at_a_token_limit_is_told_by_its_token_counts(tmp_path: Path) -> None:
    winner, instruct = case_study()
    whole, cut = by_tokens(winner, tmp_path / "whole.json", 10**6), by_tokens(instruct, tmp_path / "cut.json", 120)
    result = compare_logs(whole, cut, across_protocols=True)
    assert result.verdict == "invalid"
    assert "truncation" in result.conclusion
    assert "by token counts" in result.conclusion
    with pytest.raises(ProtocolsDifferError, match=r"decoding_policy\.max_tokens is 1000000 in A and 120 in B"):
        compare_logs(whole, cut)
    assert compare_logs(whole, by_tokens(instruct, tmp_path / "long.json", 10**6)).verdict == "inconclusive"


def test_a_comparison_loads_neither_pyarrow_nor_inspect_nor_scipy_stats() -> None:
    program = (
        "import sys; from proctor.studies.comparison import compare_logs; compare_logs(*sys.argv[1:]); "
        "sys.exit(' '.join({'pyarrow', 'inspect_ai', 'scipy.stats', 'torch'} & set(sys.modules)) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", program, *map(str, case_study())], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_logs_of_several_tools_on_the_same_questions_are_paired_by_the_question(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in lm_eval_logs()[0].read_text(encoding="utf-8").splitlines()]
    strict = [row for row in rows if row["filter"] == "strict-match"]
    details = [
        {
            "doc": {
                "query": row["doc"]["question"],
                "choices": [row["target"]],
                "gold_index": 0,
                "id": f"gsm8k-{row['doc_id']:03}",
            },
            "model_response": {"text": row["resps"][0]},
            "metric": {"em": row["exact_match"]},
        }
        for row in reversed(strict)
    ]
    path = tmp_path / "details.parquet"
    pq.write_table(pa.Table.from_pylist(details), path)
    with pytest.raises(ProtocolsDifferError) as refused:
        compare_logs(path, lm_eval_logs()[0], extractor="numeric")
    # Both were graded again by one extractor.
    assert [one.field for one in refused.value.protocol.differs] == ["evaluator.name"]
    result = compare_logs(path, lm_eval_logs()[0], extractor="numeric", across_protocols=True)
    assert (result.primary.n, result.primary.paired_by_content) == (200, 200)
    assert (result.primary.only_a, result.primary.only_b) == (0, 0)
    assert result.only_in_one == ("em", "flexible-extract", "strict-match")


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
        ("id,correct\ngsm8k-000,1\n", ("--extractor", "numeric"), ":2: the item 'gsm8k-000' has no text"),
        ("PAR1 nothing", (), "cannot be read as Parquet"),
        ('{"version": 2, "status": "success", "eval": {}}', (), "cannot be read as a log of Inspect"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    tmp_path: Path, content: str, options: tuple[str, ...], words: str
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("id,correct\ngsm8k-000,1\ngsm8k-001,0\n", encoding="utf-8")
    second.write_text(content, encoding="utf-8")
    run = run_proctor("compare", first, second, *options, "--format", "json", home=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"extractor": "strict-match"}, "'strict-match' cannot grade a log's texts again; use numeric or exact"),
        ({"extractor": "exact", "filter_name": "strict-match"}, "name one of them"),
        (
            {"filter_name": "numeric"},
            "the filter 'numeric' is not in both logs: .* has 'strict-match', 'flexible-extract'",
        ),
    ],
)
def test_a_filter_is_the_logs_own_and_an_extractor_is_proctors(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        compare_logs(*lm_eval_logs(), **options)


def with_limit(path: Path, target: Path, limit: int) -> Path:
    """The same log, of answers that could have so many tokens."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        row["arguments"]["gen_args_0"]["arg_1"]["max_gen_toks"] = limit
        lines.append(json.dumps(row))
    target.write_text("\n".join(lines), encoding="utf-8")
    return target


def test_runs_under_different_token_limits_are_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    winner, instruct = lm_eval_logs()
    short, long = with_limit(winner, tmp_path / "short.jsonl", 256), with_limit(instruct, tmp_path / "long.jsonl", 768)
    run = run_proctor("compare", short, long, home=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "decoding_policy.max_tokens is 256 in A and 768 in B" in run.stderr
    assert "--across-protocols" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    all_the_same = run_proctor("compare", short, long, "--across-protocols", "--format", "json", home=tmp_path)
    assert all_the_same.returncode == 0, all_the_same.stderr
    found = json.loads(all_the_same.stdout)
    assert found["protocol"]["differs"] == [{"field": "decoding_policy.max_tokens", "a": 256, "b": 768}]
    assert found["protocol"]["a"]["protocol_digest"] != found["protocol"]["b"]["protocol_digest"]
    assert "The protocols differ (decoding_policy.max_tokens is 256 in A and 768 in B)" in found["conclusion"]
    planned = run_proctor("power", "--from", short, long, home=tmp_path)
    assert planned.returncode == 2
    assert run_proctor("power", "--from", short, long, "--across-protocols", home=tmp_path).returncode == 0


def test_a_limit_that_one_log_records_alone_is_a_limitation_and_no_refusal(tmp_path: Path) -> None:
    winner, instruct = lm_eval_logs()
    found = as_json(compare_logs(with_limit(winner, tmp_path / "a.jsonl", 256), instruct))
    assert found["protocol"]["differs"] == []
    assert {"field": "decoding_policy.max_tokens", "unknown_in": "b"} in found["protocol"]["unknown"]
    assert "settings may differ, because a log does not record them" in found["conclusion"]


def test_the_cards_of_the_real_logs_are_equal_as_far_as_these_say(tmp_path: Path) -> None:
    run = run_proctor("compare", *lm_eval_logs(), "--format", "json", home=tmp_path)
    protocol = json.loads(run.stdout)["protocol"]
    assert protocol["a"]["protocol_digest"] == protocol["b"]["protocol_digest"]
    assert protocol["a"]["protocol"] == {
        "prompt_template.chat": False,
        "prompt_template.template": "Question: {question}\nAnswer:",
        "decoding_policy.stop": ["</s>", "Question:"],
        "decoding_policy.temperature": 0.0,
        "evaluator.name": "lm-evaluation-harness",
        "metric.name": "exact_match",
        "metric.extractor": "strict-match",
    }
    # What stands in a whole prompt needs no record of its own.
    assert {one["field"] for one in protocol["unknown"]} == {
        "task_set.task", "task_set.version", "task_set.dataset", "task_set.revision", "split.split",
        "decoding_policy.top_p", "decoding_policy.max_tokens", "decoding_policy.seed", "evaluator.version",
        "evaluator.engine",
    }  # fmt: skip
    assert {one["unknown_in"] for one in protocol["unknown"]} == {"both"}
    table = run_proctor("compare", *lm_eval_logs(), home=tmp_path).stdout
    assert "Protocols: 7 recorded settings are equal." in table
    assert "not recorded by either log: task_set.task, task_set.version" in table


def test_the_same_seed_prints_the_same_bytes(tmp_path: Path) -> None:
    arguments = ("compare", *lm_eval_logs(), "--seed", "5", "--format", "json")
    first, second = (run_proctor(*arguments, home=tmp_path) for _ in range(2))
    assert first.stdout == second.stdout != ""
