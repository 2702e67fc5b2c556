"""Pairing the answers of two logs: by item id and, where both logs know it, by the content of the question.

Two tools may name the items of one benchmark differently throughout. Where not one id is common, items are paired by
the question itself, as far as it is told and stands once in each log; never by position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.evidence.paired.discordance import PairCounts

#: An error may quote a whole completion; its beginning says which it is.
_SHOWN_CHARACTERS = 300


class Unpaired(NamedTuple):
    """An item that is not compared, why, and whose log is the reason: 'a', 'b' or 'both'."""

    item_id: str
    run: str
    reason: str


class Pairs(NamedTuple):
    """Pairs of graded answers in the order of the first log, and what could not be paired."""

    answers: tuple[tuple[LoggedAnswer, LoggedAnswer], ...]
    excluded: tuple[Unpaired, ...]
    by_content: int
    """Pairs of which both logs know the question's digest, and it is the same."""

    @property
    def counts(self) -> PairCounts:
        """Pairs by who is right."""
        seen = Counter((bool(a.correct), bool(b.correct)) for a, b in self.answers)
        return PairCounts(seen[True, True], seen[True, False], seen[False, True], seen[False, False])


def pair(a: RunLog, b: RunLog) -> Pairs:
    """Pair by id; equal ids over different questions are no pair, and neither is an item with an error row."""
    key = _pairing_key(a, b)
    others = {key(answer): answer for answer in b.answers}
    pairs: list[tuple[LoggedAnswer, LoggedAnswer]] = []
    excluded: list[Unpaired] = []
    by_content = 0
    for first in a.answers:
        second = others.pop(key(first), None)
        if second is None:
            excluded.append(Unpaired(first.item_id, "b", "not in B"))
            continue
        same = _same_content(first, second)
        if same is False:
            excluded.append(Unpaired(first.item_id, "both", "another question under the same id"))
        elif (problem := _missing(first, second)) is not None:
            excluded.append(problem)
        else:
            by_content += same is True
            pairs.append((first, second))
    excluded += [Unpaired(answer.item_id, "a", "not in A") for answer in others.values()]
    return Pairs(tuple(pairs), tuple(excluded), by_content)


def _pairing_key(a: RunLog, b: RunLog) -> Callable[[LoggedAnswer], str]:
    """The id, or the question where not one id is common and the questions can stand for it."""
    ids_a, ids_b = ({answer.item_id for answer in run.answers} for run in (a, b))
    if ids_a & ids_b:
        return _by_id
    asked_a, asked_b = (Counter(_plain(answer.question) for answer in run.answers if answer.question) for run in (a, b))
    once = {question for question, count in asked_a.items() if count == asked_b.get(question) == 1}
    if not once:
        return _by_id
    # A question that stands twice could be paired with either; such items keep their id, which the other log lacks.
    return lambda answer: question if (question := _plain(answer.question or "")) in once else answer.item_id


def _by_id(answer: LoggedAnswer) -> str:
    return answer.item_id


def _plain(question: str) -> str:
    return " ".join(question.split())


def _same_content(first: LoggedAnswer, second: LoggedAnswer) -> bool | None:
    """None where it cannot be told: neither digests made in the same way nor both questions are known."""
    digests = [answer.content for answer in (first, second) if answer.content is not None]
    if len(digests) == 2 and len({digest.partition(":")[0] for digest in digests}) == 1:
        return digests[0] == digests[1]
    if first.question and second.question:
        # Tools wrap a question in templates of their own: "Question: …\nAnswer:".
        shorter, longer = sorted((_plain(first.question), _plain(second.question)), key=len)
        return shorter in longer
    return None


def _missing(first: LoggedAnswer, second: LoggedAnswer) -> Unpaired | None:
    failed = [(name, row) for name, row in (("A", first), ("B", second)) if row.correct is None]
    if not failed:
        return None
    reasons = [f"error row in {name}: {(row.error or 'without a grade')[:_SHOWN_CHARACTERS]}" for name, row in failed]
    return Unpaired(first.item_id, "both" if len(failed) == 2 else failed[0][0].lower(), "; ".join(reasons))
