"""Pairing the answers of two logs: by item id and, where both logs know it, by the content of the question."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.evidence.discordance import PairCounts

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
    others = {answer.item_id: answer for answer in b.answers}
    pairs: list[tuple[LoggedAnswer, LoggedAnswer]] = []
    excluded: list[Unpaired] = []
    by_content = 0
    for first in a.answers:
        second = others.pop(first.item_id, None)
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
    excluded += [Unpaired(item_id, "a", "not in A") for item_id in others]
    return Pairs(tuple(pairs), tuple(excluded), by_content)


def _same_content(first: LoggedAnswer, second: LoggedAnswer) -> bool | None:
    """None where it cannot be told: a digest is missing, or the two were made in different ways."""
    if first.content is None or second.content is None:
        return None
    if first.content.partition(":")[0] != second.content.partition(":")[0]:
        return None
    return first.content == second.content


def _missing(first: LoggedAnswer, second: LoggedAnswer) -> Unpaired | None:
    failed = [(name, row) for name, row in (("A", first), ("B", second)) if row.correct is None]
    if not failed:
        return None
    reasons = [f"error row in {name}: {(row.error or 'without a grade')[:_SHOWN_CHARACTERS]}" for name, row in failed]
    return Unpaired(first.item_id, "both" if len(failed) == 2 else failed[0][0].lower(), "; ".join(reasons))
