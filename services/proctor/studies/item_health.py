"""Which items of a benchmark every model seems to know: what models' audits say of each item, together.

Of each model's name one audit counts, that of its newest weights: versions of one model are not so many witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.evidence.answers import IntArray
from proctor.evidence.known_items import ALPHA, MIN_MODELS, ItemTable, ModelAnswers, item_table
from proctor.runtime.records.item_counts import ItemColumns
from proctor.runtime.records.measures import Asked, Audited
from proctor.runtime.records.store import Records

#: Audits of a benchmark that are looked at: the newest.
MAX_AUDITS: Final = 2_000
#: Models whose answers are added up: the newest.
MAX_MODELS: Final = 64
#: Half the square of the models by the items: what the exact test of all takes. A quarter of a second.
_MAX_WORK: Final = 8_000_000
#: Benchmarks whose items stay added up.
_KEPT: Final = 16

NULL_HYPOTHESIS: Final = (
    "For each model, given how many wordings of the item it answered right, the published one is among them no more "
    "often than its share; and the models err independently of each other."
)
CAUTION: Final = (
    "An item whose rewordings are harder, or wrong, looks the same in every model: read its rewordings before you call "
    "it leaked. Of each name one version counts. Models under several names that share their training are not "
    "independent, and p is then too small."
)


class UnknownBenchmarkError(BadInputError):
    """No audit that may be seen asked such a benchmark."""


class ItemHealth(Frozen):
    """One item over the models."""

    rank: int
    item_id: str
    models: int
    """Models that were asked."""
    canonical_right: int
    """Models that had the published wording right."""
    reworded_right: int
    """Right answers to rewordings, of all models."""
    reworded_total: int
    score: float
    """Mean over the models of the published wording's right answer minus the share of right rewordings."""
    p_value: float | None
    """None under 5 models."""
    q_value: float | None
    """Corrected over the family; None where no outcome could have made p small."""
    known: bool
    """Whether the models seem to know it: q is at most 0.05."""


class BenchmarkHealth(Frozen):
    """A benchmark's items over the models that were audited by it."""

    benchmark_name: str
    benchmark_digest: str
    models: int
    """Names of models whose answers are added up."""
    models_not_counted: int
    """Further ones, which were audited longer ago."""
    weights: int
    """Different weights that were audited, of all names."""
    items: int
    items_tested: int
    """Items asked of 5 models or more of which an outcome could give a small p: the family."""
    items_known: int
    listed: tuple[ItemHealth, ...]
    """The first by rank: by p, then by score."""
    enough: bool
    """Whether there are 5 models, below which nothing is claimed."""
    null_hypothesis: str = NULL_HYPOTHESIS
    caution: str = CAUTION


class _Added(NamedTuple):
    item_ids: tuple[str, ...]
    table: ItemTable
    order: IntArray
    """Of the items, by rank."""


class BenchmarkHealths:
    """Adds up the answers on record, and keeps what it added up while nothing new was audited."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._added: dict[tuple[str, ...], _Added] = {}

    def named(self, benchmark: str, *, submitter: str | None = None) -> Audited:
        """The one benchmark that a name or a digest stands for.

        Raises:
            UnknownBenchmarkError: when there is none.
            BadInputError: when a name stands for several.
        """
        found = self._records.measures.named(benchmark, submitter=submitter)
        if len(found) == 1:
            return found[0]
        shown = visible(benchmark[:200])
        if not found:
            raise UnknownBenchmarkError(
                f"no audit on record asked a benchmark {shown!r}: give its name, or a digest; `proctor benchmarks "
                "list` names those that were asked of late"
            )
        listed = ", ".join(one.digest for one in found[:10])
        raise BadInputError(f"{len(found)} benchmarks are called {shown!r}: give the digest of one, {listed}")

    def read(self, benchmark: Audited, *, limit: int, submitter: str | None = None) -> BenchmarkHealth:
        """What is known of a benchmark's items, `limit` of them listed."""
        asked = self._records.measures.of_benchmark(benchmark.digest, limit=MAX_AUDITS, submitter=submitter)
        newest: dict[str, Asked] = {}
        for one in asked:
            newest.setdefault(one.model_id, one)
        chosen = _bounded(list(newest.values()))
        added = self._add_up(tuple(one.audit_id for one in chosen))
        table = added.table
        return BenchmarkHealth(
            benchmark_name=benchmark.name,
            benchmark_digest=benchmark.digest,
            models=len(chosen),
            models_not_counted=len(newest) - len(chosen),
            weights=len({one.model_digest for one in asked}),
            items=len(added.item_ids),
            items_tested=table.family,
            items_known=int(table.known.sum()),
            listed=tuple(_item(rank, index, added) for rank, index in enumerate(added.order[:limit].tolist(), start=1)),
            enough=len(chosen) >= MIN_MODELS,
        )

    def _add_up(self, audit_ids: tuple[str, ...]) -> _Added:
        found = self._added.pop(audit_ids, None)
        if found is None:
            found = _add_up(list(self._records.measures.items(audit_ids).values()))
        # The one that was asked for last is the last to go.
        self._added[audit_ids] = found
        while len(self._added) > _KEPT:
            self._added.pop(next(iter(self._added)), None)
        return found


def _bounded(newest: Sequence[Asked]) -> list[Asked]:
    """As many of the newest models as can be tested in time."""
    chosen, items = list[Asked](), 1
    for one in newest[:MAX_MODELS]:
        items = max(items, one.n_items)
        if len(chosen) >= MIN_MODELS and items * (len(chosen) + 1) ** 2 / 2 > _MAX_WORK:
            break
        chosen.append(one)
    return chosen


def _add_up(models: Sequence[ItemColumns]) -> _Added:
    item_ids = tuple(sorted(set().union(*(one.item_ids for one in models))))
    place = {item_id: index for index, item_id in enumerate(item_ids)}
    canonical, right, total = (np.zeros((len(models), len(item_ids)), dtype=np.int64) for _ in range(3))
    for row, one in enumerate(models):
        # Most audits ask the same items in the same order.
        columns = slice(None) if one.item_ids == item_ids else [place[item_id] for item_id in one.item_ids]
        canonical[row, columns], right[row, columns], total[row, columns] = one.canonical, one.right, one.total
    table = item_table(ModelAnswers(canonical, right, total))
    order = np.lexsort((-np.nan_to_num(table.score, nan=-2.0), np.nan_to_num(table.p, nan=2.0)))
    return _Added(item_ids, table, order)


def _item(rank: int, index: int, added: _Added) -> ItemHealth:
    table = added.table
    return ItemHealth(
        rank=rank,
        item_id=added.item_ids[index],
        models=int(table.models[index]),
        canonical_right=int(table.canonical[index]),
        reworded_right=int(table.right[index]),
        reworded_total=int(table.total[index]),
        score=float(table.score[index]),
        p_value=None if np.isnan(table.p[index]) else float(table.p[index]),
        q_value=None if np.isnan(table.q[index]) else float(table.q[index]),
        known=not np.isnan(table.q[index]) and bool(table.q[index] <= ALPHA),
    )
