"""eval_trust's JSON: `{"results": [{"id", "expected", "predicted", "correct", "gen_text"}], "meta": {…}}`.

An error row is `{"id", "error"}`. `finish_reason`, `tokens` and `question` of a row, and what meta says of the protocol
(`max_new_tokens`, `temperature`, …), are read where somebody added them.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, Final

from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import (
    Grades,
    Ids,
    one_limit,
    question_digest,
    refuse,
    text_or_none,
    tokens_or_none,
    told,
)
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.logs.recorded import plain_card

_RESULTS: Final = re.compile(r'"results"\s*:\s*\[')
_BETWEEN: Final = re.compile(r"[\s,]*")
EXTRACTOR: Final = "as logged"


def read_eval_trust(source: str, text: str, document: dict[str, Any]) -> RunLog:
    """The run of a file's text and of what it parses to.

    Raises:
        BadInputError: with file and line, at the first row that is not what it should be.
    """
    results = document["results"]
    lines = _lines(text, len(results))
    ids, grades = Ids(source), Grades(source)
    answers = tuple(_answer(source, line, row, ids, grades) for line, row in zip(lines, results, strict=True))
    if not answers:
        refuse(source, 1, "results is empty: there is not one answer to compare")
    meta = document.get("meta")
    said = dict(meta) if isinstance(meta, dict) else {}
    limit = one_limit([said.get("max_new_tokens", said.get("max_tokens"))])
    card = plain_card({**said, "max_tokens": limit}, harness="eval_trust")
    return RunLog(source, "eval_trust", EXTRACTOR, answers, limit, card=card)


def _answer(source: str, line: int, row: Any, ids: Ids, grades: Grades) -> LoggedAnswer:
    if not isinstance(row, dict):
        refuse(source, line, f"a result is {shown(row)}; an object with id and correct is needed")
    if "id" not in row:
        refuse(source, line, f"a result has no id; it has {shown(sorted(row))}")
    item_id = ids.read(row["id"], line, "id")
    error = text_or_none(row.get("error"), source, line, "error")
    if error is None and "correct" not in row:
        refuse(source, line, f"the result {shown(item_id)} has neither correct nor error; it has {shown(sorted(row))}")
    graded = error is None and row["correct"] is not None
    question = text_or_none(row.get("question"), source, line, "question")
    return LoggedAnswer(
        item_id=item_id,
        correct=grades.read(row["correct"], line, "correct") if graded else None,
        line=line,
        content=question_digest(question) if question else None,
        answer=text_or_none(row.get("predicted"), source, line, "predicted"),
        text=text_or_none(row.get("gen_text"), source, line, "gen_text"),
        finish_reason=text_or_none(row.get("finish_reason"), source, line, "finish_reason"),
        tokens=tokens_or_none(row.get("tokens"), source, line, "tokens"),
        error=error,
        question=question,
        expected=told(row.get("expected")),
    )


def _lines(text: str, count: int) -> list[int]:
    """The line on which each result begins, which the parser does not keep."""
    match = _RESULTS.search(text)
    decoder = json.JSONDecoder()
    starts: list[int] = []
    position = match.end() if match else len(text)
    while len(starts) < count:
        position = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]
        if position >= len(text) or text[position] == "]":
            break
        starts.append(position)
        position = decoder.raw_decode(text, position)[1]
    if len(starts) != count:
        # Another "results" stands before the real one; the first line is at least in the right file.
        return [1] * count
    line, lines = 1, []
    for before, here in pairwise([0, *starts]):
        line += text.count("\n", before, here)
        lines.append(line)
    return lines


def _fits(log: LogFile) -> bool:
    return log.first == "{" and isinstance(log.document.get("results"), list)


EVAL_TRUST: Final = LogFormat(_fits, lambda log: (read_eval_trust(log.source, log.text, log.document),))
