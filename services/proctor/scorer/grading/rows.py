"""The graded trials of an audit as columns: a million of them take some tens of megabytes. Pure.

Nothing that is read off the rows depends on their order, or on how the trials were cut into shards.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from proctor.domain.errors import StoreError
from proctor.domain.manifest import GradeSet
from proctor.domain.trial import DIRECT_ARMS, ROUTED_ARMS, Arm, Outcome, Shard
from proctor.evidence.answers import Answer
from proctor.evidence.replicated_answers import WordingAnswer

_ARMS: Final = tuple(Arm)
_ARM_CODES: Final = {arm: code for code, arm in enumerate(_ARMS)}
_DIRECT: Final = np.array([arm.is_direct for arm in _ARMS])
#: What became of a trial, by code; the graded ones first.
_OUTCOMES: Final = (*Outcome, None, None)
_OUTCOME_CODES: Final = {outcome: code for code, outcome in enumerate(Outcome)}
_FAILED: Final = len(Outcome)
_GIVEN_UP: Final = _FAILED + 1
#: In place of a rewording's identifier.
_OWN_WORDING: Final = "0" * 16
#: Rows that are made into answers at a time.
_BLOCK: Final = 65_536

Bytes = npt.NDArray[np.int8]
Places = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]


class Tally(NamedTuple):
    """How many trials became what."""

    outcomes: dict[Outcome, int]
    failed: int
    """Asked, and no answer came."""
    given_up: int
    """In a shard that was given up."""
    truncated: int


class Rows(NamedTuple):
    """Columns of equal length, a row a trial, each trial once."""

    item_ids: Sequence[str]
    """All items of the audit, the benchmark's before those asked beside it; a row's item is a place in it."""
    arms: Bytes
    items: Places
    states: Bytes
    truncated: Booleans
    cut_short: Booleans
    shards: Places
    """The place of the row's shard among those that were added."""
    wordings: Keys
    """The identifier of the row's rewording, as a number; 0 for the item's own wording."""
    replicates: Places
    """Which of the answers to its prompt it is, from 0."""

    def answers(self, *, direct: bool) -> Iterator[Answer]:
        """The rows as the evidence takes them: the benchmark asked directly, or through routers."""
        return self.answers_in(DIRECT_ARMS if direct else ROUTED_ARMS)

    def answers_in(self, arms: Collection[Arm]) -> Iterator[Answer]:
        """The rows of these arms as the evidence takes them."""
        wanted = np.flatnonzero(np.isin(self.arms, [_ARM_CODES[arm] for arm in arms]))
        for start in range(0, wanted.size, _BLOCK):
            block = wanted[start : start + _BLOCK]
            cuts = (self.truncated[block], self.cut_short[block])
            columns = (self.arms[block], self.items[block], self.states[block], *cuts)
            for arm, item, state, truncated, short in zip(*(column.tolist() for column in columns), strict=True):
                yield Answer(_ARMS[arm], self.item_ids[item], _OUTCOMES[state], truncated, short)

    def firsts(self) -> Rows:
        """The first answer to each prompt: all rows, where each prompt was asked once."""
        first = self.replicates == 0
        if first.all():
            return self
        return self._replace(**{name: getattr(self, name)[first] for name in self._fields[1:]})

    def wording_answers(self, arms: tuple[Arm, Arm]) -> Iterator[WordingAnswer]:
        """The rows of a canonical arm and of its reworded one, each with its wording."""
        wanted = np.flatnonzero(np.isin(self.arms, [_ARM_CODES[arm] for arm in arms]))
        for start in range(0, wanted.size, _BLOCK):
            block = wanted[start : start + _BLOCK]
            columns = (self.items[block], self.wordings[block], self.replicates[block], self.states[block])
            for item, wording, replicate, state in zip(*(column.tolist() for column in columns), strict=True):
                name = f"{wording:016x}" if wording else None
                yield WordingAnswer(self.item_ids[item], name, _OUTCOMES[state], replicate)

    def read_only(self) -> Rows:
        """The same rows, in columns that cannot be written to."""
        columns = {name: getattr(self, name).view() for name in self._fields[1:]}
        for column in columns.values():
            column.flags.writeable = False
        return self._replace(**columns)

    def tally(self) -> Tally:
        """Count the rows of all arms."""
        counts = np.bincount(self.states, minlength=_GIVEN_UP + 1).tolist()
        return Tally(
            outcomes={outcome: counts[code] for outcome, code in _OUTCOME_CODES.items()},
            failed=counts[_FAILED],
            given_up=counts[_GIVEN_UP],
            truncated=int(self.truncated.sum()),
        )

    def graded_items(self, arm: Arm) -> frozenset[str]:
        """The items of which an answer of this arm was graded."""
        mask = (self.arms == _ARM_CODES[arm]) & (self.states < _FAILED)
        return frozenset(self.item_ids[item] for item in np.unique(self.items[mask]).tolist())

    def shards_that_ask(self, item_ids: Collection[str]) -> list[int]:
        """The places of the shards in which the model is asked one of these items directly, in order."""
        places = [place for place, item_id in enumerate(self.item_ids) if item_id in item_ids]
        asking = self.shards[_DIRECT[self.arms] & np.isin(self.items, places)]
        return [int(shard) for shard in np.unique(asking)]


class RowsBuilder:
    """Rows, put together shard by shard."""

    def __init__(self, item_ids: Iterable[str]) -> None:
        """Begin without a row, with all items of the audit."""
        self._item_ids = tuple(item_ids)
        self._places = {item_id: place for place, item_id in enumerate(self._item_ids)}
        self._arms, self._states = array("b"), array("b")
        self._truncated, self._cut_short = array("b"), array("b")
        self._items, self._shards = array("i"), array("i")
        self._replicates = array("i")
        self._trial_ids, self._wordings = bytearray(), bytearray()
        self._n_shards = 0

    def add(self, grades: GradeSet) -> None:
        """The rows of an answered shard.

        Raises:
            StoreError: it asks an item that is none of the audit's.
        """
        codes = [_FAILED if outcome is None else _OUTCOME_CODES[outcome] for outcome in grades.outcomes]
        asked = grades.variant_ids, grades.replicates
        cuts = grades.truncated, grades.cut_short or [False] * len(codes)
        self._add(grades.arm, grades.trial_ids, grades.item_ids, codes, cuts, asked)

    def add_given_up(self, shard: Shard) -> None:
        """The error rows of a shard that was given up. Raises as `add`."""
        n = len(shard.trials)
        trial_ids = [trial.trial_id for trial in shard.trials]
        asked = [trial.variant_id for trial in shard.trials], [trial.replicate for trial in shard.trials]
        item_ids = [trial.item_id for trial in shard.trials]
        self._add(shard.arm, trial_ids, item_ids, [_GIVEN_UP] * n, ([False] * n, [False] * n), asked)

    def _add(
        self,
        arm: Arm,
        trial_ids: Sequence[str],
        item_ids: Sequence[str],
        states: Sequence[int],
        cuts: tuple[Sequence[bool], Sequence[bool]],
        asked: tuple[Sequence[str | None], Sequence[int]],
    ) -> None:
        n = len(trial_ids)
        try:
            self._items.extend([self._places[item_id] for item_id in item_ids])
        except KeyError as error:
            raise StoreError(f"an answer to item {error} was found, which is none of the audit's") from None
        self._arms.extend([_ARM_CODES[arm]] * n)
        self._states.extend(states)
        truncated, cut_short = cuts
        self._truncated.extend(truncated)
        self._cut_short.extend(cut_short)
        self._shards.extend([self._n_shards] * n)
        variant_ids, replicates = asked
        self._wordings += bytes.fromhex("".join([variant_id or _OWN_WORDING for variant_id in variant_ids]))
        self._replicates.extend(replicates)
        self._trial_ids += bytes.fromhex("".join(trial_ids))
        self._n_shards += 1

    def rows(self) -> Rows:
        """What was added, each trial once: of one that came twice the better row, as a trial counts once."""
        rows = Rows(
            self._item_ids,
            np.frombuffer(self._arms, np.int8),
            np.frombuffer(self._items, np.int32),
            np.frombuffer(self._states, np.int8),
            np.frombuffer(self._truncated, np.int8).astype(np.bool_),
            np.frombuffer(self._cut_short, np.int8).astype(np.bool_),
            np.frombuffer(self._shards, np.int32),
            np.frombuffer(self._wordings, ">u8").astype(np.uint64),
            np.frombuffer(self._replicates, np.int32),
        )
        trial_ids = np.frombuffer(self._trial_ids, np.uint64)
        if np.unique(trial_ids).size == trial_ids.size:
            return rows
        order = np.lexsort((rows.shards, rows.cut_short, rows.truncated, rows.states, trial_ids))
        kept = order[np.unique(trial_ids[order], return_index=True)[1]]
        return rows._replace(**{name: getattr(rows, name)[kept] for name in Rows._fields[1:]})
