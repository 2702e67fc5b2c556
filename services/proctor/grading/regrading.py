"""Grading the texts of somebody's log again, by an extractor of Proctor's.

The log's own grades say what its tool read; the same texts under another extractor say whether that decided the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from proctor.domain.errors import BadInputError
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.grading.extractors import EXTRACTORS, Extractor, target_number

#: Beside a log's own filter `numeric` nobody may take Proctor's for it.
PREFIX = "proctor:"
#: Those that need nothing but a text and its target; a letter needs the options in the order that was shown.
EXTRACTORS_OF_TEXTS = ("numeric", "exact")


def regraded_name(extractor: str) -> str:
    """What a run is called that was graded again: `proctor:numeric`."""
    return f"{PREFIX}{extractor}"


def extractor_of_texts(name: str) -> Extractor:
    """An extractor that can grade texts again, by its name. Raises BadInputError for an unknown one."""
    if name not in EXTRACTORS_OF_TEXTS:
        raise BadInputError(
            f"the extractor {name!r} cannot grade a log's texts again; use {' or '.join(EXTRACTORS_OF_TEXTS)}, or "
            "--filter for a filter of the logs' own"
        )
    return EXTRACTORS[name]


def applicable_extractors(runs: Sequence[RunLog]) -> tuple[Extractor, ...]:
    """The extractors that can grade every text of all these runs again; none where a text or a target is missing.

    `numeric` applies where every target is a number, `exact` always; whether it reads enough of the texts to say
    anything is for whoever compares.
    """
    return tuple(
        EXTRACTORS[name]
        for name in EXTRACTORS_OF_TEXTS
        if all(why_not_regraded(run, EXTRACTORS[name]) is None for run in runs)
    )


def why_not_regraded(run: RunLog, extractor: Extractor) -> str | None:
    """Why an extractor cannot grade a run's texts again, with file and line; None where it can."""
    graded = [answer for answer in run.answers if answer.correct is not None]
    for what, missing in (("text", _no_text), ("expected answer", _no_target)):
        lacking = next((answer for answer in graded if missing(answer)), None)
        if lacking is not None:
            return f"{run.source}:{lacking.line}: the item {lacking.item_id!r} has no {what}, which grading again needs"
    if extractor.name == "numeric":
        words = next((answer for answer in graded if target_number(answer.expected or "") is None), None)
        if words is not None:
            return (
                f"{run.source}:{words.line}: the expected answer {(words.expected or '')[:80]!r} of the item "
                f"{words.item_id!r} is not a number, which the extractor numeric needs"
            )
    return None


def regrade(run: RunLog, extractor: Extractor) -> RunLog:
    """The run with its texts graded again; error rows stay what they are.

    An answer in which nothing is found is wrong and has the extracted answer "". `exact` finds an answer only in a
    text that has no more words than the longest target: a longer one is not an answer written down and nothing else.

    Raises:
        BadInputError: with file and line, where `why_not_regraded` says why.
    """
    if (why_not := why_not_regraded(run, extractor)) is not None:
        raise BadInputError(why_not)
    extract = _bare_answers(run, extractor) if extractor.name == "exact" else _any_text(extractor)
    answers = tuple(
        answer if answer.correct is None else _graded(answer, extract(answer.text or ""), extractor)
        for answer in run.answers
    )
    return replace(run, extractor=regraded_name(extractor.name), answers=answers, regraded=True)


def _no_text(answer: LoggedAnswer) -> bool:
    return answer.text is None


def _no_target(answer: LoggedAnswer) -> bool:
    return answer.expected is None


def _target(answer: LoggedAnswer) -> str:
    """The answer alone, without the worked solution before it (GSM8K's `… #### 18`)."""
    return (answer.expected or "").rpartition("####")[2].strip()


def _graded(answer: LoggedAnswer, extracted: str | None, extractor: Extractor) -> LoggedAnswer:
    right = extracted is not None and extractor.agrees(extracted, _target(answer))
    return replace(answer, correct=right, answer=extracted or "")


def _any_text(extractor: Extractor) -> Callable[[str], str | None]:
    return lambda text: extractor.extract(text, ())


def _bare_answers(run: RunLog, extractor: Extractor) -> Callable[[str], str | None]:
    longest = max((len(_target(answer).split()) for answer in run.answers), default=0)
    return lambda text: extractor.extract(text, ()) if len(text.split(None, longest)) <= longest else None
