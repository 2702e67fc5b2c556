"""A plain CSV: `id` and `correct` at the least; `question`, `expected`, `answer`, `text`, `finish_reason`, `tokens` and
`error` where known. A row whose `correct` is empty, or that has an `error`, is an error row.

Columns of the protocol (`max_tokens`, `temperature`, `template`, …) say how the run was made, where every row says the
same.
"""

from __future__ import annotations

import csv
import io
from typing import Final

from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import Grades, Ids, one_limit, question_digest, refuse, tokens_or_none
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.logs.recorded import PLAIN_NAMES, plain_card
from proctor.formats.rows import first_double

NEEDED: Final = ("id", "correct")
EXTRACTOR: Final = "as logged"
_NO_GRADE: Final = "correct is empty"
_OF_PROTOCOL: Final = {*PLAIN_NAMES, "model"}


def read_plain_csv(source: str, text: str) -> RunLog:
    """The run of a CSV file's text.

    Raises:
        BadInputError: with file and line, at the first row that is not what it should be.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    ids, grades = Ids(source), Grades(source)
    answers: list[LoggedAnswer] = []
    recorded: dict[str, set[str]] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(source, header)
        start = reader.line_num + 1
        for cells in reader:
            if cells and len(cells) != len(header):
                refuse(source, start, f"{len(cells)} cells where the header has {len(header)} columns")
            if cells:
                row = dict(zip(header, cells, strict=True))
                answers.append(_answer(source, start, row, ids, grades))
                for name in _OF_PROTOCOL & row.keys():
                    recorded.setdefault(name, set()).add(row[name].strip())
            start = reader.line_num + 1
    except csv.Error as error:
        refuse(source, max(reader.line_num, 1), f"not CSV: {error}")
    if not answers:
        refuse(source, 1, "a header and no row: there is not one answer to compare")
    card = plain_card({name: next(iter(values)) for name, values in recorded.items() if len(values) == 1})
    limit = one_limit([card.protocol.get("decoding_policy.max_tokens")])
    return RunLog(source, "csv", EXTRACTOR, tuple(answers), limit, card=card)


def _check_header(source: str, header: list[str]) -> None:
    for name in NEEDED:
        if name not in header:
            refuse(source, 1, f"no column {name}; the header has {', '.join(map(shown, header[:8]))}")
    if twice := first_double(header):
        refuse(source, 1, f"the column {shown(twice)} stands twice in the header; rename one")


def _answer(source: str, line: int, cells: dict[str, str], ids: Ids, grades: Grades) -> LoggedAnswer:
    item_id = ids.read(cells["id"], line, "id")
    error = cells.get("error", "").strip() or None
    if error is None and not cells["correct"].strip():
        error = _NO_GRADE
    question = cells.get("question", "")
    return LoggedAnswer(
        item_id=item_id,
        correct=grades.read(cells["correct"], line, "correct") if error is None else None,
        line=line,
        content=question_digest(question) if question.strip() else None,
        # An empty cell is what a table writes for "not known" too.
        answer=cells.get("answer") or None,
        text=cells.get("text"),
        finish_reason=cells.get("finish_reason", "").strip() or None,
        tokens=tokens_or_none(cells.get("tokens", "").strip(), source, line, "tokens"),
        error=error,
        question=question or None,
        expected=cells.get("expected") or None,
    )


def _fits(log: LogFile) -> bool:
    if log.first in ("[", "{"):
        return False
    try:
        header = next(csv.reader([log.text.partition("\n")[0]]), [])
    except csv.Error:
        return False
    return {name.strip() for name in header}.issuperset(NEEDED)


PLAIN_CSV: Final = LogFormat(_fits, lambda log: (read_plain_csv(log.source, log.text),))
