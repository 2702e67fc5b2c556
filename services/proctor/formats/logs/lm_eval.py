"""lm-evaluation-harness `--log_samples` JSONL: one row per item *and filter*, so a run for each filter.

Counting rows as items would double n. A row's grade is under the name of its metric; `doc_hash` is the digest of the
document, by which items are paired as well as by `doc_id`. Of an item asked several times (`repeats`), the first text
is the answer and the others are its samples. What was sent is the one text of a row's one request, or of its one user
message; what an exported task says of itself stands in the document.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from proctor.domain.recorded_card import recorded_card
from proctor.domain.run_log import MAX_SETTINGS, AskedWith, LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import FirstFault, Grades, Ids, one_limit, refuse, text_or_none, told
from proctor.formats.logs.lm_eval_results import fields_beside
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.logs.recorded import fields_of_settings, template_of
from proctor.formats.meter import LOG_ROWS
from proctor.formats.rows import Row, jsonl_rows

#: For logs from before 0.4.4, whose rows do not name their metrics; the most used first.
_METRICS: Final = ("exact_match", "acc", "pass@1", "em", "f1")
UNFILTERED: Final = "none"
#: Where tasks keep the question in their document; the prompt has examples and a template around it.
_QUESTIONS: Final = ("question", "query", "problem", "prompt", "input", "text")
_LIMITS: Final = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
#: Settings that have another name in a suite.
_SETTINGS: Final = {"until": "stop", **dict.fromkeys(_LIMITS, "max_tokens")}
TITLE: Final = "lm-evaluation-harness"
#: Fields of a card, of its protocol and of its subject.
Recorded = tuple[Mapping[str, Any], Mapping[str, Any]]
NOT_RECORDED: Final[Recorded] = ({}, {})


def read_lm_eval(source: str, rows: Iterable[Row], beside: Recorded = NOT_RECORDED) -> tuple[RunLog, ...]:
    """A run for each filter, in the order in which the log first names them.

    Args:
        source: the file, for messages.
        rows: its rows.
        beside: what the results that lie beside it record, of protocol and subject.

    Raises:
        BadInputError: with file and line, at the first row that is not what it should be.
    """
    ids = Ids(source)
    grades: dict[str, Grades] = {}
    answers: dict[str, list[LoggedAnswer]] = {}
    metrics: dict[str, str] = {}
    limits: set[Any] = set()
    settings: dict[str, AskedWith] = {}
    for line, values in rows:
        for needed in ("doc_id", "resps"):
            if needed not in values:
                refuse(source, line, f"no {needed}: not a row of lm-evaluation-harness --log_samples")
        extractor = text_or_none(values.get("filter"), source, line, "filter") or UNFILTERED
        metric = metrics.setdefault(extractor, _metric(source, line, values))
        item_id = ids.read(values["doc_id"], line, "doc_id", within=f"the filter {shown(extractor)}")
        error = text_or_none(values.get("error"), source, line, "error")
        if error is None and metric not in values:
            refuse(source, line, f"no {metric}, which the rows before have as their metric")
        graded = error is None and values[metric] is not None
        grade = grades.setdefault(extractor, Grades(source))
        digest = values.get("doc_hash")
        texts = _texts(values["resps"])
        limits.add(_limit(values.get("arguments")))
        sent = _sent(values.get("arguments"))
        settings.setdefault(repr(sorted(sent.settings.items())), AskedWith(line, sent.settings))
        document = values.get("doc")
        answers.setdefault(extractor, []).append(
            LoggedAnswer(
                item_id=item_id,
                correct=grade.read(values[metric], line, metric) if graded else None,
                line=line,
                content=f"lm-eval:{digest}" if isinstance(digest, str) and digest else None,
                answer=_first_text(values.get("filtered_resps")),
                text=texts[0] if texts else None,
                finish_reason=text_or_none(values.get("finish_reason"), source, line, "finish_reason"),
                error=error,
                question=_question(document),
                expected=told(values.get("target")),
                samples=texts[1:],
                prompt=sent.prompt,
                trial=_trial(document),
            )
        )
    limit, asked_with = one_limit(limits), tuple(settings.values())[:MAX_SETTINGS]
    # A log with more settings than are kept was asked in as many ways.
    drawn = fields_of_settings(asked_with) if len(settings) <= MAX_SETTINGS else {}
    if limit is not None:
        drawn["decoding_policy.max_tokens"] = limit
    if (template := template_of(next(iter(answers.values()), ()))) is not None:
        drawn["prompt_template.template"] = template
    card = recorded_card({**beside[0], **drawn, "evaluator.name": TITLE}, beside[1])
    return tuple(
        RunLog(
            source,
            TITLE,
            name,
            tuple(found),
            limit,
            asked_with=asked_with,
            card=card.with_protocol({"metric.name": metrics[name], "metric.extractor": name}),
        )
        for name, found in answers.items()
    )


def _metric(source: str, line: int, values: dict[str, Any]) -> str:
    named = values.get("metrics")
    candidates = [name for name in named if isinstance(name, str)] if isinstance(named, list) else list(_METRICS)
    for name in candidates:
        if name in values:
            return name
    refuse(source, line, f"no metric found: looked for {', '.join(map(shown, candidates[:5])) or 'none named'}")


def _first_text(value: Any) -> str | None:
    """The first generation of nested lists; a log-likelihood pair is no text."""
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _texts(resps: Any) -> tuple[str, ...]:
    """What the model wrote: `[[text, …]]`, a text for each repeat. Log-likelihoods of options are no texts."""
    repeats = resps[0] if isinstance(resps, list) and len(resps) == 1 else resps
    if isinstance(repeats, list) and repeats and all(isinstance(text, str) for text in repeats):
        return tuple(repeats)
    first = _first_text(resps)
    return () if first is None else (first,)


def _question(document: Any) -> str | None:
    values = (document.get(name) for name in _QUESTIONS) if isinstance(document, dict) else ()
    return next((value for value in values if isinstance(value, str) and value.strip()), None)


class _Sent(NamedTuple):
    prompt: str | None
    settings: Mapping[str, Any]
    """By the names of `AskedWith`; those that it does not know under the log's own."""


def _sent(arguments: Any) -> _Sent:
    """What a row says was sent to the model: `{"gen_args_0": {"arg_0": prompt, "arg_1": settings}}`."""
    request = arguments.get("gen_args_0") if isinstance(arguments, dict) and len(arguments) == 1 else None
    if not isinstance(request, dict):
        return _Sent(None, {})
    text, given = request.get("arg_0"), request.get("arg_1")
    # A chat is written as the JSON of its messages, alone in a list.
    chat = isinstance(text, list)
    prompt = _only_message(text) if isinstance(text, list) else text
    if not isinstance(prompt, str):
        return _Sent(None, {})
    said = given.items() if isinstance(given, dict) else ()
    settings: dict[str, Any] = {_SETTINGS.get(str(name), str(name)): value for name, value in said}
    # Whether it is drawn at random is the temperature's to say; at none, it is not.
    settings.pop("do_sample", None)
    if "stop" in settings:
        settings["stop"] = [settings["stop"]] if isinstance(settings["stop"], str) else settings["stop"]
    return _Sent(prompt, {**settings, "chat": chat})


def _only_message(written: list[Any]) -> str | None:
    """The one user message of a chat; None where there are others beside it, which the model saw too."""
    try:
        messages = json.loads(written[0]) if len(written) == 1 and isinstance(written[0], str) else None
    except (ValueError, RecursionError):
        return None
    message = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    if not isinstance(message, dict) or message.get("role") != "user":
        return None
    content = message.get("content")
    return content if isinstance(content, str) else None


def _trial(document: Any) -> str | None:
    trial = document.get("trial_id") if isinstance(document, dict) else None
    return trial if isinstance(trial, str) else None


def _limit(arguments: Any) -> int | None:
    """The token limit of a row's generation arguments: `{"gen_args_0": {"arg_1": {…}}}`, formerly `[[…, {…}]]`."""
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    request = requests[0] if isinstance(requests, list) and requests else None
    parts = list(request.values()) if isinstance(request, dict) else request
    for part in parts if isinstance(parts, list) else ():
        for name in _LIMITS:
            if isinstance(part, dict) and isinstance(part.get(name), int):
                limit: int = part[name]
                return limit
    return None


def _fits(log: LogFile) -> bool:
    return log.first == "{" and "doc_id" in (log.head or {})


def _read(log: LogFile) -> tuple[RunLog, ...]:
    rows = jsonl_rows(io.BytesIO(log.data), FirstFault(log.source), LOG_ROWS)
    return read_lm_eval(log.source, rows, fields_beside(log.path))


LM_EVAL: Final = LogFormat(_fits, _read)
