"""Readers of other tools' logs: what they take, and the one line they say of what they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.formats.logs.reading import read_log


@pytest.fixture
def log(tmp_path: Path) -> Any:
    def write(content: str | bytes) -> Path:
        # The suffix says nothing, and is not asked.
        path = tmp_path / "log.dat"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def lm_eval_row(doc_id: int, name: str, grade: object, **more: object) -> str:
    return json.dumps(
        {
            "doc_id": doc_id,
            "doc": {"question": f"q{doc_id}"},
            "resps": [[f"text {doc_id}"]],
            "filtered_resps": ["7"],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": f"{doc_id:064x}",
            "exact_match": grade,
            **more,
        }
    )


def test_a_csv_is_read_with_what_it_knows(log: Any) -> None:
    (run,) = read_log(
        log(
            "\ufeffid,correct,text,finish_reason,tokens,question\r\n"
            'a,1,"two\nlines",stop,12,What?\r\nb,false,,length,768,Why?\r\n\r\nc,,,,,\r\n'
        )
    )
    a, b, c = run.answers
    assert (run.format, a.correct, a.text, a.tokens, a.truncated) == ("csv", True, "two\nlines", 12, False)
    assert (b.correct, b.truncated, b.line) == (False, True, 4)
    assert (c.correct, c.error, c.truncated) == (None, "correct is empty", None)
    assert a.content != b.content is not None


def test_scores_from_0_to_100_are_read_as_right_and_wrong(log: Any) -> None:
    (run,) = read_log(log("id,correct\na,100\nb,0\n"))
    assert [answer.correct for answer in run.answers] == [True, False]


def test_an_lm_eval_log_is_a_run_for_each_filter(log: Any) -> None:
    rows = [lm_eval_row(i, name, grade) for name, grade in (("strict", 0.0), ("flexible", 1.0)) for i in range(3)]
    strict, flexible = read_log(log("\n".join(rows)))
    assert (strict.extractor, flexible.extractor) == ("strict", "flexible")
    assert [answer.correct for answer in strict.answers] == [False] * 3
    assert [answer.item_id for answer in flexible.answers] == ["0", "1", "2"]
    assert flexible.answers[1].text == "text 1"
    assert flexible.answers[1].content == f"lm-eval:{1:064x}"


def test_eval_trust_rows_know_their_lines_and_error_rows_are_no_wrong_answers(log: Any) -> None:
    document = {
        "meta": {"n": 2},
        "results": [
            {"id": "a", "correct": True, "gen_text": 'x } ] "results": [', "finish_reason": "stop"},
            {"id": "b", "error": "OverflowError: too large"},
        ],
    }
    for indent in (None, 2):
        (run,) = read_log(log(json.dumps(document, indent=indent)))
        assert [answer.correct for answer in run.answers] == [True, None]
        assert run.answers[1].error == "OverflowError: too large"
        assert [answer.line for answer in run.answers] == ([6, 12] if indent else [1, 1])


EVAL_TRUST = '{"results": [\n{"id": "a", "correct": true},\n%s\n]}'


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("", 1, "the file is empty"),
        (" \n\n", 1, "the file is empty"),
        ("id,correct\n", 1, "a header and no row"),
        ("id,score\na,1\n", 1, "no column correct"),
        ("id,correct,id\na,1,b\n", 1, "stands twice in the header"),
        ("id,correct\na,1\na,0\n", 3, "'a' stands twice, first on line 2"),
        ("id,correct\na,1\nb,NaN\n", 3, "correct is nan"),
        ("id,correct\na,1\nb,100\n", 3, "two scales, 0–1 (line 2) and 0–100 (line 3)"),
        ("id,correct\na,0.5\nb,1\n", 2, "a part of the marks"),
        ("id,correct\na,yes\n", 2, "correct is 'yes'"),
        ("id,correct\na,1,2\n", 2, "3 cells where the header has 2 columns"),
        ("id,correct\n,1\n", 2, "id is ''"),
        ('id,correct\na,"1\n', 2, "not CSV"),
        ("id,correct,tokens\na,1,-4\n", 2, "tokens is '-4'"),
        ("hello\n", 1, "begins with 'hello'"),
        ("[1, 2]", 1, "one JSON array"),
        ('{"a": 1}', 1, "a JSON object with ['a']"),
        ('{"a": 1}\n{"a": 2}', 1, "an object with ['a'] on the first line"),
        ('{"results": []}', 1, "results is empty"),
        ('{"results": [\n{"id": "a"', 2, "not JSON at column"),
        (b"\x1f\x8b\x08..", 1, "a gzip archive, which is not read"),
        ('{"version": 2, "results": 7}', 1, "a JSON object with ['results', 'version']"),
        (lm_eval_row(0, "x", 1.0) + '\n{"doc_id": 1, "resps": [["t"]], "filter": {}}', 2, "filter is {}"),
        (EVAL_TRUST % '{"id": "b", "correct": true, "gen_text": ["t"]}', 3, "gen_text is ['t']"),
        (EVAL_TRUST % '{"id": "b", "correct": true, "tokens": 1e400}', 3, "tokens is inf"),
        (b"id,correct\na,\xff\n", 2, "byte 0xff is not UTF-8"),
        (EVAL_TRUST % '{"id": "a", "correct": false}', 3, "'a' stands twice"),
        (EVAL_TRUST % '{"id": "b"}', 3, "neither correct nor error"),
        (EVAL_TRUST % '{"correct": true}', 3, "no id"),
        (EVAL_TRUST % '{"id": "NaN", "correct": NaN}', 3, "NaN is not a JSON number"),
        (EVAL_TRUST % '{"id": "b", "correct": "maybe"}', 3, "correct is 'maybe'"),
        (EVAL_TRUST % '{"id": ["b"], "correct": true}', 3, "id is ['b']"),
        (EVAL_TRUST % "7", 3, "a result is 7"),
        (lm_eval_row(0, "x", 1.0) + "\n" + lm_eval_row(0, "x", 1.0), 2, "stands twice under the filter 'x'"),
        (lm_eval_row(0, "x", 1.0) + '\n{"doc_id": 1', 2, "not JSON"),
        (lm_eval_row(0, "x", 1.0) + "\n" + lm_eval_row(1, "x", float("nan")), 2, "NaN is not a JSON number"),
        (lm_eval_row(0, "x", 1.0) + '\n{"doc_id": 1}', 2, "no resps"),
        (lm_eval_row(0, "x", 1.0, metrics=["bleu"]), 1, "no metric found: looked for 'bleu'"),
        ('{"doc_id": 0, "resps": [], "metrics": ["acc"], "acc": 0.25}', 1, "a part of the marks"),
    ],
)
def test_bad_input_is_one_line_with_file_and_line(log: Any, content: str | bytes, line: int, words: str) -> None:
    path = log(content)
    with pytest.raises(BadInputError) as caught:
        read_log(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "\n" not in message


def test_what_grading_again_needs_is_read_where_the_log_has_it(log: Any) -> None:
    (table,) = read_log(log('id,correct,question,expected,text\na,1,"What?",18,"It is 18"\nb,0,,,\n'))
    assert (table.answers[0].question, table.answers[0].expected, table.answers[0].text) == ("What?", "18", "It is 18")
    assert (table.answers[1].question, table.answers[1].expected, table.token_limit) == (None, None, None)
    document = {"meta": {"max_new_tokens": 768}, "results": [{"id": "a", "correct": True, "expected": 18}]}
    (trust,) = read_log(log(json.dumps(document)))
    assert (trust.answers[0].expected, trust.token_limit) == ("18", 768)
    (lm_eval,) = read_log(
        log(
            lm_eval_row(
                0,
                "x",
                1.0,
                target="16 - 7\n#### 9",
                resps=[["first", "second", "third"]],
                arguments={"gen_args_0": {"arg_0": "q", "arg_1": {"until": [], "max_gen_toks": 256}}},
            )
        )
    )
    answer = lm_eval.answers[0]
    assert (answer.question, answer.expected) == ("q0", "16 - 7\n#### 9")
    assert (answer.text, answer.samples, lm_eval.token_limit) == ("first", ("second", "third"), 256)


def test_the_older_arguments_of_lm_eval_are_read_and_limits_that_differ_are_none(log: Any) -> None:
    def rows(*limits: int) -> str:
        return "\n".join(lm_eval_row(i, "x", 1, arguments=[["q", {"max_gen_toks": n}]]) for i, n in enumerate(limits))

    assert read_log(log(rows(64, 64)))[0].token_limit == 64
    assert read_log(log(rows(64, 65)))[0].token_limit is None


def test_log_likelihoods_of_options_are_no_texts(log: Any) -> None:
    (run,) = read_log(log(lm_eval_row(0, "none", 1.0, resps=[[[-1.5, False]], [[-0.5, True]]], target=1)))
    assert (run.answers[0].text, run.answers[0].samples, run.answers[0].expected) == (None, (), "1")


def test_whatever_stands_where_a_question_or_target_should_the_run_is_read(log: Any) -> None:
    for odd in (None, [], {}, [1, 2], "", True, {"question": 5}):
        (run,) = read_log(log(lm_eval_row(0, "x", 1.0, doc=odd, target=odd, arguments=odd, resps=odd)))
        assert run.answers[0].correct is True


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        read_log(tmp_path / "none.csv")


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,ideorct\n01NaN', max_size=80).map(str.encode))
def test_whatever_a_file_holds_it_is_read_or_refused_in_one_line(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "anything"
    path.write_bytes(content)
    try:
        message = "" if all(run.answers for run in read_log(path)) else "a run\nwithout an answer"
    except BadInputError as error:
        message = str(error)
    assert "\n" not in message


def test_deep_nesting_is_refused(log: Any) -> None:
    with pytest.raises(BadInputError):
        read_log(log('{"results": ' + "[" * 100_000))
