"""Logs held against the prompts that an audit by their suite asks. Pure.

A log counts only where it answers just what the audit would have asked, once, under what the suite pins. Whatever it
says otherwise is refused; what it does not say is unknown, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from proctor.domain.answer_bounds import CHARACTER_BYTES, max_answer_bytes
from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.domain.log_origin import CHAT, UNKNOWN, LoggedAnswer, Recorded, settings_of
from proctor.domain.problems import visible
from proctor.domain.run_log import MAX_SETTINGS, RunLog
from proctor.domain.run_log import LoggedAnswer as Row
from proctor.domain.suite import Suite
from proctor.domain.trial import Completion, FinishReason, Trial

#: Of a text of a log that a message quotes, or that is kept as an error.
_SHOWN: Final = 120
_MAX_ERROR: Final = 1_000
_FIELDS: Final = {CHAT: "prompt_config.chat_template"}


class Matched(NamedTuple):
    """What logs say to the prompts of an audit."""

    answers: Mapping[str, LoggedAnswer]
    """By the trial; every trial has one."""
    format: str
    model: str | None
    """As the logs call it."""
    settings: tuple[str, ...]
    """The settings that they record, which are the suite's."""
    finish_reasons: Recorded
    token_counts: Recorded
    repeated: int
    """Rows that say again what another says."""


def match_logs(
    trials: Iterable[Trial], logs: Sequence[RunLog], suite: Suite, *, known_as: str | None = None
) -> Matched:
    """The answers of logs to the trials of an audit.

    Args:
        trials: every trial of the model under audit.
        logs: of one run, or of parts of one.
        suite: pins the settings and the model.
        known_as: what the model is called in the logs, where the suite's names do not tell.

    Raises:
        BadInputError: where the logs are not of this suite's prompts, leave some out, answer one in several ways, or
            say that another model was asked, or under other settings; naming how many, the first, and its line.
    """
    settings = _same_settings(logs, suite)
    model = _same_model(logs, suite, known_as)
    places, repeated = _Places(trials), 0
    strangers = list[str]()
    for log in logs:
        for row in log.answers:
            _hold_single(log, row)
            trial = places.of(row)
            if trial is None:
                strangers.append(_where(log, row))
            elif not places.take(trial, log, row):
                repeated += 1
    if strangers:
        _refuse_strangers(strangers, sum(len(log.answers) for log in logs), logs, suite)
    places.hold_complete()
    answers = {
        trial.trial_id: _answer(trial, *places.taken[trial.trial_id], max_tokens=suite.decoding.max_tokens)
        for trial in places.trials
    }
    return Matched(
        answers=answers,
        format=logs[0].format,
        model=model,
        settings=settings,
        finish_reasons=_same_in_arms(places.trials, answers),
        token_counts=_recorded([_counts(one) for one in answers.values()]),
        repeated=repeated,
    )


class _Places:
    """The trials that are to be answered, and which row answers each."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.trials = tuple(trials)
        self.taken: dict[str, tuple[RunLog, Row]] = {}
        self._by_id = {trial.trial_id: trial for trial in self.trials}
        self._digests = {trial.trial_id: _digest(trial.prompt) for trial in self.trials}
        self._by_prompt: dict[str, list[Trial]] = {}
        for trial in self.trials:
            self._by_prompt.setdefault(self._digests[trial.trial_id], []).append(trial)

    def of(self, row: Row) -> Trial | None:
        """The trial that a row answers: the one that it names, if that asks the row's prompt; without a name one that
        does."""
        if row.prompt is None:
            return None
        digest, named = _digest(row.prompt), self._by_id.get(row.trial or row.item_id)
        if named is not None:
            return named if self._digests[named.trial_id] == digest else None
        same = self._by_prompt.get(digest, [])
        # Items that ask the same in the same words have a row each.
        return next((trial for trial in same if trial.trial_id not in self.taken), same[0] if same else None)

    def take(self, trial: Trial, log: RunLog, row: Row) -> bool:
        """Have a row answer a trial; False where another row said the same before.

        Raises:
            BadInputError: where another row says something else.
        """
        before = self.taken.setdefault(trial.trial_id, (log, row))
        if before[0] is log and before[1] is row:
            return True
        if (before[1].text, before[1].error) != (row.text, row.error):
            raise BadInputError(
                f"{_where(log, row)} answers a prompt that {_where(*before)} answers otherwise: an audit asks each "
                "prompt once, so give the logs of one run"
            )
        return False

    def hold_complete(self) -> None:
        """Raises BadInputError where a trial has no row."""
        missing = [trial for trial in self.trials if trial.trial_id not in self.taken]
        if missing:
            first = missing[0]
            raise BadInputError(
                f"the logs leave out {len(missing):,} of the suite's {len(self.trials):,} prompts, the first that of "
                f"item {visible(first.item_id)[:_SHOWN]!r} in arm {first.arm.value} (trial {first.trial_id}): what is "
                "left out could hide what the audit looks for; run the whole task, or give every log of its run"
            )


def _hold_single(log: RunLog, row: Row) -> None:
    if row.samples:
        raise BadInputError(
            f"{_where(log, row)} has {1 + len(row.samples)} answers to one prompt, and an audit asks each once: which "
            "of them counts would be a choice; run the task with one epoch (one repeat)"
        )


def _refuse_strangers(strangers: Sequence[str], n_rows: int, logs: Sequence[RunLog], suite: Suite) -> NoReturn:
    silent = next((row for log in logs for row in log.answers if row.prompt is None), None)
    why = (
        "the log does not say of it what one text the model was sent (another solver or template, examples, a system "
        "message, or a format that keeps no prompts)"
        if silent is not None
        else "its text is another than any that this suite asks (by SHA-256)"
    )
    raise BadInputError(
        f"{len(strangers):,} of the logs' {n_rows:,} prompts are not those of {suite.audit_suite_id}; the first is "
        f"{strangers[0]}: {why}. Export the task anew with `proctor variants export`, in the home whose variants "
        "count, and run that as it is"
    )


def _same_settings(logs: Sequence[RunLog], suite: Suite) -> tuple[str, ...]:
    """The settings that every log records.

    Raises:
        BadInputError: where one is not the suite's, or stands in some logs and not in others.
    """
    wanted, recorded = settings_of(suite), dict[str, RunLog]()
    for log in logs:
        if log.format != logs[0].format:
            raise BadInputError(
                f"{logs[0].source} is a log of {logs[0].format} and {log.source} of {log.format}: what two tools send "
                "is not known to be the same, so give the logs of one run"
            )
        if len(log.asked_with) >= MAX_SETTINGS:
            # A reader keeps no more, so what the others are is not known.
            raise BadInputError(
                f"{log.source} was asked in {MAX_SETTINGS} different ways or more, and an audit asks in one: give the "
                "log of a task as it was exported"
            )
        for asked in log.asked_with:
            for name, value in asked.values.items():
                if name not in wanted or not _equal(value, wanted[name]):
                    _refuse_setting(f"{log.source}:{asked.line}", name, value, wanted)
    sets = [frozenset.intersection(*(frozenset(one.values) for one in log.asked_with or [_NOTHING])) for log in logs]
    for log, found in zip(logs, sets, strict=True):
        recorded |= dict.fromkeys(found, log)
    for log, found in zip(logs, sets, strict=True):
        if lacking := sorted(recorded.keys() - found):
            raise BadInputError(
                f"{recorded[lacking[0]].source} records {lacking[0]} and {log.source} does not, so that they may have "
                "been asked otherwise: give the logs of one run"
            )
    return tuple(sorted(recorded))


class _Nothing(NamedTuple):
    values: Mapping[str, Any]


_NOTHING: Final = _Nothing({})


def _equal(found: Any, wanted: Any) -> bool:
    # True is no 1 here.
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


def _refuse_setting(where: str, name: str, value: Any, wanted: Mapping[str, Any]) -> NoReturn:
    said = visible(repr(value))[:_SHOWN]
    if name not in wanted:
        raise BadInputError(
            f"{where}: the answers were drawn with {visible(name)[:_SHOWN]} {said}, which no suite pins; run the task "
            "as it was exported"
        )
    if name == CHAT:
        sent, other = ("as a message of a chat", "none") if value else ("as a completion", "user")
        raise BadInputError(
            f"{where}: the prompts were sent {sent}, and the suite's prompt_config.chat_template is {other!r}; run the "
            "task as it was exported, or audit a suite that says how it was run"
        )
    raise BadInputError(
        f"{where}: the answers were drawn with {name} {said}, and the suite pins decoding_config.{name} "
        f"{wanted[name]!r}; run the task as it was exported, or audit a suite that says how it was run"
    )


def _same_model(logs: Sequence[RunLog], suite: Suite, known_as: str | None) -> str | None:
    """The model as the logs call it; None where none does.

    Raises:
        BadInputError: where it is another than the suite's.
    """
    named = {log.model: log for log in logs if log.model is not None}
    for model, log in named.items():
        if model != known_as and not _is_audited(model, suite):
            shown = visible(model)[:_SHOWN]
            raise BadInputError(
                f"{log.source} is of the model {shown!r}, and the suite audits {suite.model.model_id!r}; give the log "
                f"of that one, or --model-in-log {shown!r} if it is called so there"
            )
    if len(named) > 1:
        raise BadInputError(f"the logs are of {len(named)} models: give the logs of one run")
    return next((visible(model)[:200] for model in named), None)


def _is_audited(model: str, suite: Suite) -> bool:
    """Whether a log's name is one of the suite's, perhaps behind what serves it (`openai-api/local/NAME`)."""
    names = (suite.model.model_id, suite.model.name_on_endpoint)
    return any(model == name or model.endswith(f"/{name}") for name in names)


def _answer(trial: Trial, log: RunLog, row: Row, *, max_tokens: int) -> LoggedAnswer:
    error, text, most = row.error, row.text or "", max_answer_bytes(max_tokens)
    if error is None and row.text is None:
        error = "the log has no answer"
    if error is None and len(text) * CHARACTER_BYTES > most and len(text.encode("utf-8", "surrogatepass")) > most:
        error = f"the answer is longer than the {most:,} bytes that {max_tokens:,} tokens may have"
    if error is not None:
        failed = Completion(
            trial_id=trial.trial_id, finish_reason="error", error=visible(f"in the log: {error}")[:_MAX_ERROR]
        )
        return LoggedAnswer(prompt=_digest(trial.prompt), completion=failed)
    reason: FinishReason = {None: "unknown", True: "length", False: "stop"}[log.cut(row)]  # type: ignore[assignment]
    completion = Completion(
        trial_id=trial.trial_id,
        text=text,
        finish_reason=reason,
        input_tokens=row.input_tokens,
        output_tokens=row.tokens,
    )
    return LoggedAnswer(prompt=_digest(trial.prompt), completion=completion)


def _same_in_arms(trials: Sequence[Trial], answers: Mapping[str, LoggedAnswer]) -> Recorded:
    """Whether finish reasons are recorded.

    Raises:
        BadInputError: where that differs between the arms, whose truncated answers could then not be compared.
    """
    by_arm: dict[str, list[bool]] = {}
    for trial in trials:
        said = answers[trial.trial_id].completion
        if said.error is None:
            by_arm.setdefault(trial.arm.value, []).append(said.finish_reason != "unknown")
    found = {arm: _recorded(told) for arm, told in by_arm.items()}
    if len(set(found.values())) > 1:
        each = ", ".join(f"{arm}: {how}" for arm, how in sorted(found.items()))
        raise BadInputError(
            f"how answers ended is not recorded alike in both arms ({each}), so that cut answers of one could not be "
            "told from those of the other; give the logs of one run"
        )
    return next(iter(found.values()), UNKNOWN)


def _counts(answer: LoggedAnswer) -> bool:
    return answer.completion.output_tokens is not None


def _recorded(told: Sequence[bool]) -> Recorded:
    return "recorded" if told and all(told) else "partly" if any(told) else "unknown"


def _where(log: RunLog, row: Row) -> str:
    return f"{log.source}:{row.line} ({visible(row.trial or row.item_id)[:_SHOWN]})"


def _digest(prompt: str) -> str:
    # Half of a pair has no UTF-8; it is no prompt of a suite, and must not end in a traceback.
    return bytes_digest(prompt.encode("utf-8", "surrogatepass"))
