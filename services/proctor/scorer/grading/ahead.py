"""Grading shards before their audit has ended, so that little is left to do when the last of them is answered."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pydantic import ValidationError

from proctor.domain.errors import CodeExecutionError, StoreError
from proctor.domain.manifest import AnsweredShard, GradeSet
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.metrics import recording as metrics
from proctor.scorer.grading.loading import grade_answered
from proctor.scorer.grading.targets import Targets

logger = logging.getLogger(__name__)

#: Shards whose grades are remembered: those of the last seconds, of which the router may not have heard.
_MAX_RECENT: Final = 8_192
#: Objects that are written at a time: a disk takes no longer for several than for one.
_WRITERS: Final = 8


def grade_and_store(
    store: ArtifactStore, shards: Sequence[AnsweredShard], targets: Targets
) -> tuple[AnsweredShard, ...]:
    """Grade shards and put the grades into the store.

    Returns:
        The shards with the digest of their grades, in their order; without those that could not be graded or stored.
    """
    # While one waits for the disk, the next is graded.
    with ThreadPoolExecutor(_WRITERS) as writers:
        storing = [
            writers.submit(_stored, store, answered, grades)
            for answered in shards
            if (grades := _graded(store, answered, targets)) is not None
        ]
    return tuple(one for stored in storing if (one := stored.result()) is not None)


def _graded(store: ArtifactStore, answered: AnsweredShard, targets: Targets) -> GradeSet | None:
    try:
        return grade_answered(store, answered, targets)
    except (StoreError, CodeExecutionError, ValidationError) as error:
        logger.warning("shard %s is not graded before its audit has ended: %s", answered.shard, error)
        return None


def _stored(store: ArtifactStore, answered: AnsweredShard, grades: GradeSet) -> AnsweredShard | None:
    try:
        digest = put_model(store, grades)
        metrics.trials_graded_ahead(len(grades.trial_ids))
        return answered.model_copy(update={"grades": digest})
    except StoreError as error:
        logger.warning("the grades of shard %s cannot be stored: %s", answered.shard, error)
        return None


class RecentGrades:
    """Where the grades are that this process stored last.

    An audit ends with its last answer, and the message that its last shards are graded is then still on its way.
    """

    def __init__(self, *, max_shards: int = _MAX_RECENT) -> None:
        """Remember the last so many shards."""
        self._max_shards = max_shards
        self._grades: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, graded: Iterable[AnsweredShard]) -> None:
        """Remember the grades of these shards."""
        for one in graded:
            if one.grades is not None:
                self._grades[one.shard, one.completions] = one.grades
        while len(self._grades) > self._max_shards:
            self._grades.popitem(last=False)

    def filled_in(self, answered: Sequence[AnsweredShard]) -> tuple[AnsweredShard, ...]:
        """The shards, those that come without grades with the ones that are remembered of them."""
        return tuple(one if one.grades is not None else self._with_grades(one) for one in answered)

    def _with_grades(self, one: AnsweredShard) -> AnsweredShard:
        grades = self._grades.get((one.shard, one.completions))
        return one if grades is None else one.model_copy(update={"grades": grades})
