"""Work on a batch of which single members may be bad: those are refused, and the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.errors import StoreError
from proctor.domain.item import Rejection

log = logging.getLogger(__name__)

#: The engine raised at this one item or pair, and not at the others of its batch.
FAILED: Final = "failed"
_SHOWN_CHARACTERS: Final = 200

T = TypeVar("T")
R = TypeVar("R")


class Line(NamedTuple, Generic[T]):
    """An item or pair of a stream by its place, from 0, and its caller's name: what it holds, or why it is refused."""

    place: int
    item_id: str
    content: T | Rejection


def worked_on(lines: Sequence[Line[T]], work: Callable[[Sequence[T]], Sequence[R]]) -> list[Line[R]]:
    """Put through `work` what was not refused, and each result in its place.

    Raises:
        StoreError, SQLAlchemyError: when a store fails, which is no fault of an item.
    """
    done = iter(_surviving(work, [line.content for line in lines if not isinstance(line.content, Rejection)]))
    return [
        Line(line.place, line.item_id, line.content if isinstance(line.content, Rejection) else next(done))
        for line in lines
    ]


def _surviving(work: Callable[[Sequence[T]], Sequence[R]], batch: Sequence[T]) -> list[R | Rejection]:
    # Where a batch fails, find out by halves at which of its members.
    if not batch:
        return []
    try:
        return list(work(batch))
    except (StoreError, SQLAlchemyError):
        raise
    except Exception as error:
        if len(batch) == 1:
            log.exception("one message of a stream failed")
            detail = f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]
            return [Rejection(item_id="", reason=FAILED, detail=detail)]
    half = len(batch) // 2
    return [*_surviving(work, batch[:half]), *_surviving(work, batch[half:])]
