"""lighteval's details, a Parquet file: a run for each metric that says right or wrong.

Three layouts: `doc`, `model_response` and `metric` (since 0.11; also written `__doc__` and so on), before it `example`,
`predictions` and `metrics`, and before 0.6 the same as text. A metric with marks between right and wrong is left out
where another has none. `truncated` is passed over: it counts tokens cut off the prompt, not off the answer. The older
layouts have no ids; an item is then named by the digest of its question. `line` counts rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from proctor.domain.recorded_card import RecordedCard, recorded_card
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import (
    FirstFault,
    Grades,
    Ids,
    graded_columns,
    one_limit,
    question_digest,
    refuse,
    told,
)
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.meter import LOG_ROWS
from proctor.formats.parquet_rows import open_parquet

#: What is read; logits and token ids of the prompt are most of a file.
_NEW: Final = ("doc", "model_response", "metric")
_OLD: Final = ("example", "predictions", "cont_tokens", "gold", "choices", "gold_index", "metrics")
_DIGEST_CHARACTERS: Final = 12
#: No prompt has so many examples that their number has as many digits.
_DIGITS: Final = 6
#: A value that the oldest layout wrote as Python text; parsing longer ones takes memory without end.
_MAX_LITERAL: Final = 1 << 20


class _Row(NamedTuple):
    answer: LoggedAnswer
    metrics: dict[str, Any]
    limit: Any
    said: dict[str, Any]
    """Fields of the protocol's card that the row records."""


def read_lighteval(path: Path) -> tuple[RunLog, ...]:
    """A run for each binary metric, in the file's order.

    Raises:
        BadInputError: where pyarrow is missing, the file is not lighteval's details, or a row is not what it should be.
    """
    source = str(path)
    ids = Ids(source)
    seen: dict[str, int] = {}
    rows = [
        _new_row(source, position, values, ids, seen)
        if "doc" in values
        else _old_row(source, position, values, ids, seen)
        for position, values in _values(path)
    ]
    if not rows:
        refuse(source, 1, "lighteval's details without a row: there is not one answer to compare")
    limit = one_limit(row.limit for row in rows)
    card = _card(rows, limit)
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    if not names:
        refuse(source, 1, "no row has a metric; write the details with one")
    return tuple(
        _run(source, rows, name, limit, card.with_protocol({"metric.name": name, "metric.extractor": name}))
        for name in graded_columns({name: [row.metrics.get(name) for row in rows] for name in names})
    )


def _run(source: str, rows: Sequence[_Row], name: str, limit: int | None, card: RecordedCard) -> RunLog:
    grades = Grades(source)
    return RunLog(source, "lighteval", name, tuple(_graded(row, name, grades) for row in rows), limit, card=card)


def _card(rows: Sequence[_Row], limit: int | None) -> RecordedCard:
    """What every row records of the protocol in the same way."""
    first = rows[0].said
    said = {name: value for name, value in first.items() if all(row.said.get(name) == value for row in rows)}
    if limit is not None:
        said["decoding_policy.max_tokens"] = limit
    return recorded_card({**said, "evaluator.name": "lighteval"})


def _said(doc: dict[str, Any]) -> dict[str, Any]:
    """Fields of the card that a document of the newest layout records."""
    task, examples, stop = (doc.get(name) for name in ("task_name", "fewshot_samples", "stop_sequences"))
    found: dict[str, Any] = {}
    if isinstance(task, str) and task:
        # The number of examples stands behind the name: `gsm8k|5`.
        name, _, asked = task.rpartition("|")
        counted = bool(name) and asked.isdecimal() and len(asked) < _DIGITS
        found["task_set.task"] = name if counted else task
        if counted:
            found["prompt_template.n_shot"] = int(asked)
    if isinstance(examples, list):
        found["prompt_template.n_shot"] = len(examples)
    if isinstance(stop, list):
        found["decoding_policy.stop"] = sorted(text for text in stop if isinstance(text, str))
    return found


def _values(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows under plain column names, counted from 1."""
    with open_parquet(path, LOG_ROWS) as file:
        columns = {name.strip("_"): name for name in file.columns}
        if not set(_NEW) <= set(columns) and not {"example", "metrics"} <= set(columns):
            refuse(
                str(path),
                1,
                f"a Parquet file with the columns {shown(sorted(columns)[:6])}; lighteval's details have doc, "
                "model_response and metric (or example, predictions and metrics)",
            )
        wanted = _NEW if set(_NEW) <= set(columns) else _OLD
        names = {columns[name]: name for name in wanted if name in columns}
        for position, values in file.rows(FirstFault(str(path)), list(names)):
            yield position, {names[name]: value for name, value in values.items()}


def _new_row(source: str, position: int, values: dict[str, Any], ids: Ids, seen: dict[str, int]) -> _Row:
    doc, response, metric = (_object(source, position, name, values[name]) for name in _NEW)
    question = told(doc.get("query"))
    texts = _texts(response.get("text"))
    generated = response.get("output_tokens")
    answer = LoggedAnswer(
        item_id=ids.read(told(doc.get("id")) or _named(source, position, question, seen), position, "doc.id"),
        correct=None,
        line=position,
        content=question_digest(question) if question else None,
        text=texts[0] if texts else None,
        tokens=_count(generated) if texts else None,
        question=question,
        expected=_gold(doc.get("choices"), doc.get("gold_index")),
        samples=texts[1:],
    )
    return _Row(answer, metric, doc.get("generation_size"), _said(doc))


def _old_row(source: str, position: int, values: dict[str, Any], ids: Ids, seen: dict[str, int]) -> _Row:
    metrics = _object(source, position, "metrics", values["metrics"])
    question = told(values["example"])
    texts = _texts(_literal(values.get("predictions")))
    gold = told(_literal(values.get("gold")))
    answer = LoggedAnswer(
        item_id=ids.read(_named(source, position, question, seen), position, "example"),
        correct=None,
        line=position,
        content=question_digest(question) if question else None,
        text=texts[0] if texts else None,
        tokens=_count(_literal(values.get("cont_tokens"))) if texts else None,
        question=question,
        expected=gold or _gold(_literal(values.get("choices")), _literal(values.get("gold_index"))),
        samples=texts[1:],
    )
    return _Row(answer, metrics, None, {})


def _graded(row: _Row, name: str, grades: Grades) -> LoggedAnswer:
    value = row.metrics.get(name)
    if value is None:
        return replace(row.answer, error=f"no value of {name}")
    return replace(row.answer, correct=grades.read(value, row.answer.line, name))


def _named(source: str, position: int, question: str | None, seen: dict[str, int]) -> str:
    """A name made of the question; questions that stand several times are told apart by their order."""
    if question is None:
        refuse(source, position, "neither an id nor a question, by which an item could be paired")
    name = question_digest(question)[: len("question:") + _DIGEST_CHARACTERS]
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _object(source: str, position: int, field: str, value: Any) -> dict[str, Any]:
    value = _literal(value)
    if not isinstance(value, dict):
        refuse(source, position, f"{field} is {shown(value)}; an object is needed")
    return value


def _literal(value: Any) -> Any:
    """The value of which the oldest layout wrote the Python text; what is no such text stays as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "[") or len(value) > _MAX_LITERAL:
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return value


def _texts(value: Any) -> tuple[str, ...]:
    """The generations; log-likelihoods of options are none. Layouts nest them once or twice."""
    if isinstance(value, list) and value and all(isinstance(each, list) for each in value):
        value = [text for each in value for text in each]
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return tuple(value)
    return ()


def _count(generated: Any) -> int | None:
    """Tokens of the first generation, from a list of token ids for each, nested once or twice."""
    while isinstance(generated, list) and generated and isinstance(generated[0], list):
        generated = generated[0]
    return len(generated) if isinstance(generated, list) and generated else None


def _gold(choices: Any, index: Any) -> str | None:
    """The one right option; None where there are several or none."""
    chosen = index[0] if isinstance(index, list) and len(index) == 1 else index
    if not isinstance(choices, list) or isinstance(chosen, bool) or not isinstance(chosen, int):
        return None
    return told(choices[chosen]) if 0 <= chosen < len(choices) else None


LIGHTEVAL: Final = LogFormat(lambda log: log.data.startswith(b"PAR1"), lambda log: read_lighteval(log.path))
