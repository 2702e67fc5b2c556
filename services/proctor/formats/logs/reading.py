"""Reading a log of whatever format it is: told by its content, because suffixes are given by people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from proctor.domain.errors import BadInputError
from proctor.domain.plugins import ExtensionPoint
from proctor.domain.recorded_card import RecordedCard, recorded_card
from proctor.domain.run_log import MAX_SETTINGS, AskedWith, LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import Ids, refuse
from proctor.formats.logs.log_file import KNOWN, LogFile
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.logs.plain_csv import PLAIN_CSV, read_plain_csv
from proctor.formats.logs.recorded import fields_of_settings
from proctor.formats.meter import LOG_ROWS

T = TypeVar("T")
_HERE: Final = "proctor.formats.logs"
#: In the order in which a file is tried: what two of them would take is the first one's.
LOG_FORMATS: Final = ExtensionPoint(
    "proctor.formats",
    "log format",
    LogFormat,
    {
        "lighteval": f"{_HERE}.lighteval_details:LIGHTEVAL",
        "inspect": f"{_HERE}.inspect_log:INSPECT",
        "csv": f"{_HERE}.plain_csv:PLAIN_CSV",
        "lm_eval": f"{_HERE}.lm_eval:LM_EVAL",
        "eval_trust": f"{_HERE}.eval_trust:EVAL_TRUST",
        "proctor": f"{_HERE}.proctor_report:AUDIT_REPORT",
    },
)
_TEXTS: Final = ("content", "answer", "text", "finish_reason", "error", "question", "expected", "prompt", "trial")


def read_log(path: str | Path) -> tuple[RunLog, ...]:
    """The runs of a log, one for each filter, scorer or metric; the log's own primary one, named first, is first.

    Proctor's own formats are tried first. What none of them knows is shown to the plug-ins', by the alphabet.

    Raises:
        BadInputError: with file and line, when the file is missing, empty or not what it says.
    """
    log = LogFile.of(Path(path))
    try:
        own = _own_format(log)
    except BadInputError:
        if (runs := _read_by_plugin(log)) is None:
            raise
        return runs
    return tuple(own.read(log))


def read_answers(path: str | Path) -> RunLog:
    """What was asked and answered, by a log of any format that `read_log` reads, whether or not it was graded there.

    Raises:
        BadInputError: as `read_log`.
    """
    log = LogFile.of(Path(path))
    try:
        own = _own_format(log)
    except BadInputError:
        if (runs := _read_by_plugin(log)) is None:
            raise
        return runs[0]
    return own.read(log)[0] if own.ungraded is None else own.ungraded(log)


def _own_format(log: LogFile) -> LogFormat:
    """The first of Proctor's own formats that a file fits."""
    for name in LOG_FORMATS.built_in:
        if (found := LOG_FORMATS.get(name)).fits(log):
            return found
    if log.first == "[":
        refuse(log.source, 1, f"one JSON array; a log is {KNOWN}")
    if log.first != "{":
        header = log.text.partition("\n")[0]
        if "," in header:
            # Its reader says best what a table lacks.
            read_plain_csv(log.source, log.text)
            return PLAIN_CSV
        refuse(log.source, 1, f"begins with {shown(header[:60])}; a log is {KNOWN}")
    refuse(log.source, 1, f"a JSON object with {shown(sorted(log.document)[:6])}; a log is {KNOWN}")


def _read_by_plugin(log: LogFile) -> tuple[RunLog, ...] | None:
    """The runs as the first plug-in reads them that the file fits; None where it fits none.

    Raises:
        BadInputError: the plug-in refuses the file, or fails; where the file fits none, that one could not be asked.
    """
    failed: BadInputError | None = None
    for name in LOG_FORMATS.names[len(LOG_FORMATS.built_in) :]:
        reader = f"the log format {name!r} of {LOG_FORMATS.origin(name)}"
        try:
            found = LOG_FORMATS.get(name)
            fits = _of_plugin(partial(_fits, found), log, reader)
        except BadInputError as error:
            failed = failed or error
            continue
        if fits:
            runs = _of_plugin(partial(_read, found), log, reader)
            _check(log.source, runs, reader)
            read_as = f"{name} of {LOG_FORMATS.origin(name)}"
            return tuple(replace(run, source=log.source, format=read_as, card=_card(run)) for run in runs)
    if failed is not None:
        raise failed
    return None


def _fits(found: LogFormat, log: LogFile) -> bool:
    try:
        return found.fits(log)
    except BadInputError:
        # What it looked for cannot be had of this file, e.g. text.
        return False


def _read(found: LogFormat, log: LogFile) -> tuple[RunLog, ...]:
    return tuple(found.read(log))


def _of_plugin(function: Callable[[LogFile], T], log: LogFile, reader: str) -> T:
    try:
        return function(log)
    except BadInputError:
        raise
    except Exception as error:
        # Somebody else's code: whatever it raises is its fault, and has to be said with its name.
        raise BadInputError(f"{log.source}: {reader} failed: {type(error).__name__}: {shown(str(error))}") from error


def _check(source: str, runs: Sequence[Any], reader: str) -> None:
    """Hold what a plug-in's reader gives to what Proctor's own readers hold themselves to."""
    if not runs or not all(isinstance(run, RunLog) and run.answers for run in runs):
        raise BadInputError(f"{source}: {reader} found no run with an answer in it")
    for run in runs:
        limit = run.token_limit
        if not isinstance(run.extractor, str) or not (limit is None or (isinstance(limit, int) and limit > 0)):
            raise BadInputError(f"{source}: {reader} gave a run with a wrong extractor or token_limit")
        if not _says_settings(run):
            raise BadInputError(f"{source}: {reader} gave a run with a wrong model or asked_with")
        if not isinstance(run.card, RecordedCard):
            raise BadInputError(f"{source}: {reader} gave a run whose card is no RecordedCard")
    answers = sum(len(run.answers) for run in runs)
    if answers > LOG_ROWS.rows:
        raise BadInputError(f"{source}: {reader} found {answers:,} answers; at most {LOG_ROWS.rows:,} are read")
    size = 0
    for run in runs:
        ids = Ids(source)
        for answer in run.answers:
            fault = _fault(answer)
            if fault is not None:
                line = answer.line if isinstance(answer, LoggedAnswer) and isinstance(answer.line, int) else 1
                refuse(source, line, f"{reader} gave an answer {fault}")
            ids.read(answer.item_id, answer.line, "item_id")
            size += sum(len(text) for text in (*_texts(answer), *answer.samples))
    if size > LOG_ROWS.total_bytes:
        raise BadInputError(f"{source}: {reader} found more than {LOG_ROWS.total_bytes >> 20} MiB of text")


def _card(run: RunLog) -> RecordedCard:
    """The card that a plug-in's reader gave, with the settings that it gave beside it, held to what a card can hold."""
    return recorded_card({**fields_of_settings(run.asked_with), **run.card.protocol}, run.card.subject)


def _fault(given: Any) -> str | None:
    """What is wrong with an answer, in words; None where nothing is."""
    if not isinstance(given, LoggedAnswer):
        return f"that is {shown(given)}, and no LoggedAnswer"
    # What a plug-in put into it need not be of the declared types.
    answer: Any = given
    if not isinstance(answer.item_id, str) or not isinstance(answer.line, int):
        return "without an item_id that is text, or a line that is a number"
    if answer.correct is not None and not isinstance(answer.correct, bool):
        return f"whose correct is {shown(answer.correct)}, which is none of true, false and none"
    odd = [name for name in _TEXTS if not isinstance(getattr(answer, name), str | None)]
    if odd or not all(isinstance(text, str) for text in answer.samples):
        return f"whose {odd[0] if odd else 'samples'} is no text"
    for tokens in (answer.tokens, answer.input_tokens):
        if tokens is not None and (not isinstance(tokens, int) or tokens < 0):
            return f"with {shown(tokens)} tokens"
    return None


def _says_settings(run: Any) -> bool:
    return (
        isinstance(run.model, str | None)
        and isinstance(run.asked_with, tuple)
        and len(run.asked_with) <= MAX_SETTINGS
        and all(isinstance(one, AskedWith) and isinstance(one.line, int) for one in run.asked_with)
        and all(
            isinstance(one.values, Mapping) and all(isinstance(k, str) for k in one.values) for one in run.asked_with
        )
    )


def _texts(answer: LoggedAnswer) -> list[str]:
    return [text for name in _TEXTS if (text := getattr(answer, name)) is not None]
