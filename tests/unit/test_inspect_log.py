"""Logs of Inspect, written by inspect_ai itself and read back."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any, Literal

import pytest
from inspect_ai.log import EvalConfig, EvalDataset, EvalError, EvalLog, EvalSample, EvalSampleLimit, EvalSpec
from inspect_ai.log import write_eval_log as write_log
from inspect_ai.model import ModelOutput, ModelUsage
from inspect_ai.scorer import Score

from proctor.domain.errors import BadInputError
from proctor.formats.logs.reading import read_log

Stop = Literal["stop", "max_tokens", "unknown"]


def sample(
    number: int | str,
    scores: dict[str, Any] | None = None,
    *,
    epoch: int = 1,
    text: str = "ANSWER: 18",
    stop: Stop = "stop",
    tokens: int | None = None,
    **more: Any,
) -> EvalSample:
    """One sample; a score is its value, or a Score."""
    output = ModelOutput.from_content("mockllm/model", text, stop_reason=stop)
    if tokens is not None:
        output.usage = ModelUsage(input_tokens=5, output_tokens=tokens, total_tokens=5 + tokens)
    made = {name: value if isinstance(value, Score) else Score(value=value) for name, value in (scores or {}).items()}
    fields = {"input": f"What is {number}?", "target": "18", **more}
    return EvalSample(id=number, epoch=epoch, output=output, scores=made or None, **fields)


def written(folder: Path, *samples: EvalSample, kind: str = "eval", max_tokens: int | None = None) -> Path:
    """A log as inspect_ai writes it, under a suffix that says nothing."""
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created="2026-11-21T12:00:00+00:00",
            task="t",
            dataset=EvalDataset(name="d"),
            model="mockllm/model",
            config=EvalConfig(),
        ),
        samples=list(samples),
    )
    log.plan.config.max_tokens = max_tokens
    path = folder / f"log.{kind}"
    write_log(log, str(path))
    return path.rename(folder / "log.dat")


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_log_is_a_run_for_each_scorer(tmp_path: Path, kind: str) -> None:
    path = written(
        tmp_path,
        sample(0, {"match": Score(value="C", answer="18"), "judge": 1.0}, tokens=7),
        sample(1, {"match": Score(value="I", answer=""), "judge": 0.0}, stop="max_tokens", tokens=50),
        sample("b", {"match": "N", "judge": True}, stop="unknown"),
        kind=kind,
        max_tokens=50,
    )
    match, judge = read_log(path)
    assert (match.extractor, judge.extractor, match.format, match.token_limit) == ("match", "judge", "inspect", 50)
    assert [answer.correct for answer in match.answers] == [True, False, False]
    assert [answer.correct for answer in judge.answers] == [True, False, True]
    assert [answer.item_id for answer in match.answers] == ["0", "1", "b"]
    assert [answer.truncated for answer in match.answers] == [False, True, None]
    first, second, _ = match.answers
    assert (first.question, first.expected, first.text, first.answer, first.tokens) == (
        "What is 0?",
        "18",
        "ANSWER: 18",
        "18",
        7,
    )
    assert second.unread
    assert first.content != second.content is not None


def test_the_first_epoch_is_the_answer_and_the_others_are_samples(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        sample(0, {"match": "I"}, epoch=2, text="second"),
        sample(0, {"match": "C"}, epoch=1, text="first"),
        sample(0, {"match": "I"}, epoch=3, text="third"),
        kind="json",
    )
    (run,) = read_log(path)
    (answer,) = run.answers
    assert (answer.correct, answer.text, answer.samples) == (True, "first", ("second", "third"))


def test_failed_and_unscored_samples_are_error_rows(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        sample(0, {"match": "C"}),
        sample(1, error=EvalError(message="connection reset", traceback="", traceback_ansi="")),
        sample(2, limit=EvalSampleLimit(type="time", limit=10)),
        sample(3, {"match": float("nan")}),
    )
    (run,) = read_log(path)
    assert [answer.correct for answer in run.answers] == [True, None, None, None]
    assert [answer.error for answer in run.answers[1:]] == [
        "connection reset",
        "stopped at its time limit, not scored by match",
        "not scored by match",
    ]


def test_a_sample_that_ran_into_its_token_limit_is_cut(tmp_path: Path) -> None:
    (run,) = read_log(written(tmp_path, sample(0, {"match": "I"}, limit=EvalSampleLimit(type="token", limit=10))))
    assert run.answers[0].truncated is True


def test_a_scorer_of_several_things_is_a_run_for_each_and_marks_are_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        sample(0, {"both": {"fact": "C", "style": 0.7}, "rouge": 0.31}),
        sample(1, {"both": {"fact": "I", "style": 1.0}, "rouge": 1.0}),
    )
    (run,) = read_log(path)
    assert run.extractor == "both/fact"
    assert [answer.correct for answer in run.answers] == [True, False]


def test_chats_are_asked_by_their_last_user_message(tmp_path: Path) -> None:
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser

    asked = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="What is 2 + 2?")]
    (run,) = read_log(written(tmp_path, sample(0, {"match": "C"}, input=asked, target=["4", "four"])))
    assert (run.answers[0].question, run.answers[0].expected) == ("What is 2 + 2?", None)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([], "a log of Inspect without samples"),
        ([sample(0)], "no sample has a score"),
        ([sample(0, {"m": "P"})], ":1: m is 0.5, a part of the marks"),
        ([sample(0, {"m": "C"}), sample(1, {"m": 0.25})], ":2: m is 0.25, a part of the marks"),
        ([sample(0, {"m": "excellent"})], ":1: m is 'excellent'; write true, false, 1 or 0"),
        ([sample(0, {"m": ["C"]})], ":1: m is ['C']"),
        ([sample(0, {"m": float("inf")})], ":1: m is inf"),
        ([sample(0, {"m": 1}), sample(1, {"m": 100})], "scores on two scales"),
        ([sample(0, {"m": 1}), sample(0, {"m": 1})], ":2: the id '0' stands twice under epoch 1, first on line 1"),
        ([sample(" ", {"m": 1})], ":1: id is ' '"),
    ],
)
def test_a_log_that_cannot_be_compared_is_refused_in_one_line(
    tmp_path: Path, samples: list[EvalSample], words: str
) -> None:
    path = written(tmp_path, *samples, kind="json")
    with pytest.raises(BadInputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def archive(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04..", "cannot be read as a zip archive"),
        (archive(readme=b"hello"), "not an .eval log of Inspect, which has a header.json"),
        (archive(header_json=b"[]"), "cannot be read as a log of Inspect"),
        (archive(header_json=b"{" * 100_000), "cannot be read as a log of Inspect"),
        (archive(header_json=b"{}", samples__1_json=b"\xff"), "cannot be read as a log of Inspect"),
        (b'{"version": 2, "status": "success", "eval": {"x": 1}}', "cannot be read as a log of Inspect"),
        (b'{"version": 2, "status": "success", "eval": {', "cannot be read as a log of Inspect"),
        (b'{"samples": [1], "eval": {}}', "cannot be read as a log of Inspect"),
        (b'{"version": 9, "status": "success", "eval": {' + b'"a": {' * 50_000, "cannot be read as a log of Inspect"),
    ],
)
def test_what_only_looks_like_a_log_of_inspect_is_refused_in_one_line(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(BadInputError) as caught:
        read_log(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_archive_that_unpacks_to_more_than_a_log_is_refused_unopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.formats.logs.archive.MAX_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "log.eval"
    path.write_bytes(archive(header_json=b"0" * (1 << 21)))
    assert path.stat().st_size < 1 << 14
    with pytest.raises(BadInputError, match="unpacks to more than 1 MiB"):
        read_log(path)


def test_without_inspect_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, sample(0, {"m": 1}))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(BadInputError, match=r"needs inspect_ai: pip install 'proctor\[inspect\]'"):
        read_log(path)
