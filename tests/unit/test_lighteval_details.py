"""lighteval's details, in each layout that it has written.

lighteval makes them by `Dataset.from_list([asdict(detail), …]).to_parquet(…)`; the fields below are those of its
`Detail`, `Doc` and `ModelResponse` (0.5.0, 0.8.1 and 0.13.0), and pyarrow is what writes them there too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proctor.domain.errors import BadInputError
from proctor.formats.logs import lighteval_details
from proctor.formats.logs.reading import read_log
from proctor.formats.meter import LOG_ROWS


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "details"
    pq.write_table(pa.Table.from_pylist([{name: row[name] for name in sorted(row)} for row in rows]), path)
    return path


def new(number: int, metric: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row since 0.11."""
    doc = {
        "query": f"Question {number}",
        "choices": [" 18"],
        "gold_index": [0],
        "id": str(number),
        "task_name": "gsm8k|0",
        "generation_size": 256,
        "num_samples": 1,
        "specific": None,
    }
    response = {
        "input": "prompt",
        "text": ["It is 18."],
        "output_tokens": [[1, 2, 3]],
        "logprobs": [],
        "truncated_tokens_count": 0,
    }
    doc |= more.pop("doc", {})
    response |= more.pop("model_response", {})
    return {"doc": doc, "model_response": response, "metric": metric}


def old(number: int, metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row of 0.6 to 0.10."""
    return {
        "example": f"Question {number}",
        "instruction": "",
        "full_prompt": f"Examples\n\nQuestion {number}",
        "predictions": ["It is 18."],
        "input_tokens": [[9, 9]],
        "cont_tokens": [[[1, 2, 3]]],
        "truncated": [700],
        "gold": ["18"],
        "choices": [],
        "gold_index": [],
        "metrics": metrics,
        **more,
    }


def test_details_are_a_run_for_each_metric_that_says_right_or_wrong(tmp_path: Path) -> None:
    em: list[dict[str, Any]] = [
        {"em": 1.0, "rouge": 0.4, "judgement": "good", "loose": 1},
        {"em": 0.0, "rouge": 1.0, "loose": 1},
    ]
    first, second = read_log(written(tmp_path, [new(n, metric) for n, metric in enumerate(em)]))
    assert (first.extractor, second.extractor, first.format, first.token_limit) == ("em", "loose", "lighteval", 256)
    assert [answer.correct for answer in first.answers] == [True, False]
    assert [answer.item_id for answer in first.answers] == ["0", "1"]
    answer = first.answers[0]
    assert (answer.question, answer.text, answer.expected, answer.tokens) == ("Question 0", "It is 18.", " 18", 3)
    assert answer.truncated is None


def test_columns_in_underscores_are_the_same(tmp_path: Path) -> None:
    rows = [{f"__{name}__": value for name, value in new(0, {"em": 1}).items()}]
    assert read_log(written(tmp_path, rows))[0].answers[0].correct is True


def test_several_generations_are_an_answer_and_its_samples(tmp_path: Path) -> None:
    several = {"text": ["a", "b", "c"], "output_tokens": [[1], [2, 3], [4]]}
    (run,) = read_log(written(tmp_path, [new(0, {"em": 1}, model_response=several)]))
    assert (run.answers[0].text, run.answers[0].samples, run.answers[0].tokens) == ("a", ("b", "c"), 1)


def test_the_older_layout_names_items_by_their_question(tmp_path: Path) -> None:
    rows = [old(0, {"em": 1}), old(1, {"em": 0}), old(0, {"em": None})]
    (run,) = read_log(written(tmp_path, rows))
    first, second, again = run.answers
    assert first.item_id.startswith("question:")
    assert first.item_id != second.item_id
    assert again.item_id == f"{first.item_id}#2"
    assert [answer.correct for answer in run.answers] == [True, False, None]
    assert (first.text, first.expected, first.tokens, first.truncated) == ("It is 18.", "18", 3, None)
    assert again.error == "no value of em"


def test_the_oldest_layout_of_texts_is_read_as_the_values_that_it_prints(tmp_path: Path) -> None:
    rows = [{name: str(value) for name, value in old(n, {"em": n}, gold=["a 'quoted' one"]).items()} for n in (0, 1)]
    (run,) = read_log(written(tmp_path, rows))
    assert [answer.correct for answer in run.answers] == [False, True]
    assert (run.answers[0].text, run.answers[0].expected) == ("It is 18.", "a 'quoted' one")


def test_log_likelihoods_of_options_are_no_texts(tmp_path: Path) -> None:
    row = old(0, {"acc": 1}, predictions=[[-1.0, 0.0], [-2.0, 1.0]], choices=["A", "B"], gold_index=[1], gold=[])
    (run,) = read_log(written(tmp_path, [row]))
    assert (run.answers[0].text, run.answers[0].tokens, run.answers[0].expected) == (None, None, "B")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": 1, "score": 2}], ":1: a Parquet file with the columns ['id', 'score']"),
        ([new(0, {"em": 1}), new(1, {"em": float("nan")})], ":2: em is nan"),
        ([new(0, {"f1": 0.5})], ":1: f1 is 0.5, a part of the marks"),
        ([new(0, {"em": 1}), new(1, {"em": 100})], ":2: scores on two scales"),
        ([new(0, {"judgement": "good"})], ":1: judgement is 'good'"),
        ([new(0, {"em": 1}), new(0, {"em": 1})], ":2: the id '0' stands twice"),
        ([{**new(0, {"em": 1}), "metric": 1.0}], ":1: metric is 1.0; an object is needed"),
        ([old(0, {"em": 1}, example=None)], ":1: neither an id nor a question"),
        ([{**old(0, {}), "metrics": "{'em': numpy.float64(1.0)}"}], ":1: metrics is"),
        ([{**old(0, {}), "metrics": "{" * 5000}], ":1: metrics is"),
        ([{**old(0, {}), "metrics": "{}"}], ":1: no row has a metric"),
    ],
)
def test_details_that_cannot_be_compared_are_refused_in_one_line(
    tmp_path: Path, rows: list[dict[str, Any]], words: str
) -> None:
    path = written(tmp_path, rows)
    with pytest.raises(BadInputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}:")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"PAR1....", b"PAR1" + b"\0" * 50 + b"PAR1", b"PAR1"])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "details.parquet"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="cannot be read as Parquet") as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [old(0, {"em": 1})])
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(BadInputError, match="without a row"):
        read_log(path)


def test_more_rows_than_a_run_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lighteval_details, "LOG_ROWS", LOG_ROWS._replace(rows=2))
    with pytest.raises(BadInputError, match="more than 2 rows"):
        read_log(written(tmp_path, [old(n, {"em": 1}) for n in range(3)]))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, [old(0, {"em": 1})])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInputError, match=r"needs pyarrow: pip install 'proctor\[parquet\]'"):
        read_log(path)
