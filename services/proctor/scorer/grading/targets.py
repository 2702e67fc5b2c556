"""What is right for each item of an audit, and how its answers are read: all that grading needs of the items."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from proctor.domain.item import Item
from proctor.grading import EXECUTION, Extractor, executing, resolve_extractor
from proctor.runtime.artifacts.chunks import StoredItems
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.scorer.grading.programs import Programs

#: Audits whose shards come in turns, and items of all of them together: a hundred megabytes or so.
_MAX_AUDITS: Final = 8
_MAX_ITEMS: Final = 500_000


class Targets(NamedTuple):
    """The items of an audit as far as they are graded."""

    extractor: Extractor
    by_item: Mapping[str, str]
    """Item id → target, in the order in which the items were drawn, the benchmark's before those asked beside it."""


def load_targets(store: ArtifactStore, items: str, extractor: str, beside: tuple[str, ...] = ()) -> Targets:
    """Read what an ItemIndex says is right.

    Args:
        items: digest of the ItemIndex.
        extractor: as the suite names it; the benchmark's items alone say which one that is.
        beside: digests of the ItemIndexes of what is asked beside them: fresh items, control items.

    Raises:
        BadInputError: the extractor cannot read the items' answers.
        StoreError: the items cannot be read.
    """
    by_item: dict[str, str] = {}

    def noted() -> Iterator[Item]:
        for item in StoredItems(store, items):
            by_item[item.item_id] = item.target
            yield item

    resolved = resolve_extractor(extractor, noted())
    for index in beside:
        by_item |= {item.item_id: item.target for item in StoredItems(store, index)}
    return Targets(resolved, by_item)


class TargetsCache:
    """The targets of the audits that were graded last, so that a shard does not cost reading all items."""

    def __init__(
        self, *, programs: Programs | None = None, max_audits: int = _MAX_AUDITS, max_items: int = _MAX_ITEMS
    ) -> None:
        """Hold at most so many audits, with at most so many items together; the latest is held whatever its size.

        `programs` judges answers that are code.
        """
        self._programs = programs
        self._max_audits, self._max_items = max_audits, max_items
        self._held: OrderedDict[tuple[str, str, tuple[str, ...]], Targets] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, store: ArtifactStore, items: str, extractor: str, *beside: str | None) -> Targets:
        """As `load_targets`, of which the result is kept; what is None is not there.

        Raises:
            CodeExecutionError: the answers are code, and it is not run here.
        """
        key = items, extractor, tuple(index for index in beside if index is not None)
        with self._lock:
            if (held := self._held.get(key)) is None:
                held = self._held[key] = self._judged(load_targets(store, *key))
            self._held.move_to_end(key)
            while len(self._held) > 1 and self._is_full():
                self._held.popitem(last=False)
        if held.extractor.name == EXECUTION and self._programs is not None:
            self._programs.check()
        return held

    def _judged(self, targets: Targets) -> Targets:
        if self._programs is None:
            return targets
        return targets._replace(extractor=executing(targets.extractor, self._programs))

    def _is_full(self) -> bool:
        n_items = sum(len(targets.by_item) for targets in self._held.values())
        return len(self._held) > self._max_audits or n_items > self._max_items
