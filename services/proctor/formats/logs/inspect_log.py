"""Inspect's logs, `.eval` (a zip archive) and `.json`, through inspect_ai's own reader: a run for each scorer.

A scorer that gives marks between right and wrong is left out where another gives none; a scorer that grades several
things at once is a run for each. Of several epochs the first is the answer and the texts of the others are its samples:
the log's reduction over epochs is a mean, which is neither right nor wrong. `line` counts the log's samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.recorded_card import RecordedCard
from proctor.domain.run_log import AskedWith, LoggedAnswer, RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.archive import check_archive
from proctor.formats.logs.checks import Grades, Ids, graded_columns, one_limit, question_digest, refuse, told
from proctor.formats.logs.inspect_card import card_of_inspect
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.log_format import LogFormat
from proctor.formats.logs.recorded import template_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_ARCHIVE: Final = b"PK\x03\x04"
#: How Inspect begins a log; it may hold NaN, which its writer means, and is left to Inspect's own reader.
_BEGINNING: Final = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
#: Not needed, and most of a log of agents. inspect_ai then leaves them unread in an archive.
_UNREAD: Final = {"messages", "events", "store"}
# Not by inspect_ai's value_to_float, which makes 0 of whatever it does not know.
_LETTERS: Final = {"C": 1, "I": 0, "P": 0.5, "N": 0, "yes": 1, "no": 0}
#: Providers that send a prompt as it is; every other sends messages.
_COMPLETIONS: Final = frozenset({"openai-api-completions", "vllm-completions"})
#: Settings that have another name in a suite.
_SETTINGS: Final = {"stop_seqs": "stop"}
#: Settings of a model call that are about how it is made, and not what is answered.
_OF_TRANSPORT: Final = frozenset(
    {
        "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections",
        "cache_prompt", "batch", "extra_headers", "logprobs", "top_logprobs", "prompt_logprobs", "parallel_tool_calls",
        "internal_tools", "max_tool_output", "fail_on_refusal",
    }
)  # fmt: skip
#: Limits of a whole sample that cut the last answer.
_CUTTING: Final = {"token": "max_tokens", "context": "model_length"}


class _Epoch(NamedTuple):
    """One sample; the first two fields order them, and no two samples share both."""

    number: int
    position: int
    sample: EvalSample


class _Samples(NamedTuple):
    """What a log holds."""

    samples: list[EvalSample]
    limit: int | None
    """The token limit of a model call."""
    model: str
    asked_with: AskedWith
    card: RecordedCard
    """What the log records of its protocol, the scorer apart."""
    sent_as_given: bool
    """Whether nothing but the sample's input was sent: no solver but `generate`, and no system message."""


class _Score(NamedTuple):
    value: Any
    answer: str | None


def read_inspect_log(path: Path, kind: str) -> tuple[RunLog, ...]:
    """A run for each scorer, in the order of the first graded sample.

    Args:
        path: the log.
        kind: 'eval' or 'json', as its content shows.

    Raises:
        BadInputError: where inspect_ai is missing, it cannot read the file, or a sample is not what it should be.
    """
    held = _samples(path, kind)
    return _runs(str(path), _rows(str(path), held), held)


def read_ungraded(path: Path, kind: str) -> RunLog:
    """The answers alone, graded or not. Raises as `read_inspect_log`."""
    held = _samples(path, kind)
    return _run(str(path), "ungraded", tuple(row for row, _ in _rows(str(path), held)), held)


def _rows(source: str, held: _Samples) -> list[tuple[LoggedAnswer, EvalSample]]:
    epochs: dict[str, list[_Epoch]] = {}
    ids = Ids(source)
    for position, sample in enumerate(held.samples, 1):
        item_id = ids.read(sample.id, position, "id", within=f"epoch {sample.epoch}")
        epochs.setdefault(item_id, []).append(_Epoch(sample.epoch, position, sample))
    return [_row(item_id, sorted(asked), as_given=held.sent_as_given) for item_id, asked in epochs.items()]


def _samples(path: Path, kind: str) -> _Samples:
    if kind == "eval":
        check_archive(path)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise BadInputError(
            f"{path} is a log of Inspect, which needs inspect_ai: pip install 'proctor[inspect]'"
        ) from None
    try:
        # A whole path, because inspect_ai takes what begins with a scheme for an address.
        log: EvalLog = read_eval_log(
            path.absolute(),
            format="json" if kind == "json" else "eval",
            resolve_attachments="core",
            exclude_fields=_UNREAD,
        )
    except Exception as error:
        # A reader of several formats and versions fails in as many ways; each is about the file.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInputError(f"{path} cannot be read as a log of Inspect: {shown(reason)}") from None
    if not log.samples:
        refuse(str(path), 1, f"a log of Inspect without samples (status {log.status}): there is nothing to compare")
    limits = [config.max_tokens for config in (log.plan.config, log.eval.model_generate_config)]
    steps = [step.solver.rpartition("/")[2] for step in (*log.plan.steps, *filter(None, [log.plan.finish]))]
    settings = _settings(log)
    return _Samples(
        samples=log.samples,
        limit=one_limit([limit for limit in limits if limit is not None][:1]),
        model=log.eval.model,
        asked_with=AskedWith(1, settings),
        card=card_of_inspect(log, settings),
        sent_as_given=steps == ["generate"] and "system_message" not in settings,
    )


def _settings(log: EvalLog) -> dict[str, Any]:
    """The settings of the log's model calls by the names of `AskedWith`; the task's go before the model's.

    A setting that is not there was not sent, and what the server then did nobody knows. Stop texts and a seed are
    another matter: what sends none asks for none.
    """
    plain = {
        **log.eval.model_generate_config.model_dump(exclude_none=True),
        **log.plan.config.model_dump(exclude_none=True),
    }
    settings = {_SETTINGS.get(name, name): value for name, value in plain.items() if name not in _OF_TRANSPORT}
    chat = log.eval.model.partition("/")[0] not in _COMPLETIONS
    return {"seed": None, "stop": [], **settings, "chat": chat}


def _row(item_id: str, epochs: Sequence[_Epoch], *, as_given: bool) -> tuple[LoggedAnswer, EvalSample]:
    """An item's answer, without a grade yet, and the sample of its first epoch."""
    (_, position, sample), *others = epochs
    question = _question(sample)
    choice = sample.output.choices[0] if sample.output.choices else None
    stopped = choice.stop_reason if choice is not None and choice.stop_reason != "unknown" else None
    limit = sample.limit.type if sample.limit is not None else None
    answer = LoggedAnswer(
        item_id=item_id,
        correct=None,
        line=position,
        content=question_digest(question) if question else None,
        text=sample.output.completion,
        finish_reason=_CUTTING.get(limit or "", stopped),
        tokens=sample.output.usage.output_tokens if sample.output.usage is not None else None,
        input_tokens=sample.output.usage.input_tokens if sample.output.usage is not None else None,
        error=sample.error.message if sample.error is not None else None,
        question=question,
        expected=told(sample.target),
        samples=tuple(other.sample.output.completion for other in others if other.sample.error is None),
        prompt=_prompt(sample) if as_given else None,
        trial=trial if isinstance(trial := (sample.metadata or {}).get("trial_id"), str) else None,
    )
    return answer, sample


def _question(sample: EvalSample) -> str | None:
    if isinstance(sample.input, str):
        return sample.input or None
    asked = [message.text for message in sample.input if message.role == "user" and message.text]
    return asked[-1] if asked else None


def _prompt(sample: EvalSample) -> str | None:
    """The one text that was sent; None where there were other messages beside it, which the model saw too."""
    if isinstance(sample.input, str):
        return sample.input
    only = sample.input[0] if len(sample.input) == 1 else None
    return only.content if only is not None and only.role == "user" and isinstance(only.content, str) else None


def _run(source: str, extractor: str, answers: tuple[LoggedAnswer, ...], held: _Samples) -> RunLog:
    told: dict[str, Any] = {"metric.extractor": extractor}
    if (template := template_of(answers)) is not None:
        told["prompt_template.template"] = template
    card, asked_with = held.card.with_protocol(told), (held.asked_with,)
    return RunLog(source, "inspect", extractor, answers, held.limit, model=held.model, asked_with=asked_with, card=card)


def _runs(source: str, rows: Sequence[tuple[LoggedAnswer, EvalSample]], held: _Samples) -> tuple[RunLog, ...]:
    scored = [(row, sample, _scores(sample)) for row, sample in rows]
    names = dict.fromkeys(name for row, _, scores in scored if row.error is None for name in scores)
    if not names:
        refuse(source, 1, "a log of Inspect in which no sample has a score; run inspect score on it")
    columns = {
        name: [scores[name].value for row, _, scores in scored if row.error is None and name in scores]
        for name in names
    }
    runs = []
    for name in graded_columns(columns):
        grades = Grades(source)
        answers = tuple(_graded(row, sample, name, scores.get(name), grades) for row, sample, scores in scored)
        runs.append(_run(source, name, answers, held))
    return tuple(runs)


def _scores(sample: EvalSample) -> dict[str, _Score]:
    """Scores by name: the scorer's, or `scorer/part` where it grades several things."""
    found: dict[str, _Score] = {}
    for name, score in (sample.scores or {}).items():
        parts = score.value.items() if isinstance(score.value, dict) else [(None, score.value)]
        for part, value in parts:
            if isinstance(value, str):
                value = _LETTERS.get(value, value)
            # NaN is how Inspect writes that its scorer came to no grade.
            unscored = value is None or (isinstance(value, float) and math.isnan(value))
            found[name if part is None else f"{name}/{part}"] = _Score(None if unscored else value, score.answer)
    return found


def _graded(row: LoggedAnswer, sample: EvalSample, name: str, score: _Score | None, grades: Grades) -> LoggedAnswer:
    if row.error is not None:
        return row
    if score is None or score.value is None:
        why = f"stopped at its {sample.limit.type} limit, " if sample.limit is not None else ""
        return replace(row, error=f"{why}not scored by {name}")
    return replace(row, correct=grades.read(score.value, row.line, name), answer=score.answer)


def _fits(log: LogFile) -> bool:
    if log.data.startswith(_ARCHIVE) or _BEGINNING.match(log.text):
        return True
    # Rows are no document, and "results" is the word of another tool.
    if log.first != "{" or "doc_id" in (log.head or {}) or isinstance(log.document.get("results"), list):
        return False
    return isinstance(log.document.get("eval"), dict) and isinstance(log.document.get("samples"), list)


def _kind(log: LogFile) -> str:
    return "eval" if log.data.startswith(_ARCHIVE) else "json"


INSPECT: Final = LogFormat(
    _fits,
    lambda log: read_inspect_log(log.path, _kind(log)),
    ungraded=lambda log: read_ungraded(log.path, _kind(log)),
)
