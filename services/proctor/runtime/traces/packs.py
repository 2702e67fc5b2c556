"""Which packs of a stage are traced: all of a small audit, few of a large one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

#: Packs of a stage that one router process has traced, unless PROCTOR_TRACE_PACKS says otherwise. A pack is some forty
#: spans at most: its own, two for each of up to sixteen shards, and those of their answers and grades.
MOST_PACKS: Final = 64
#: The first ones in a row show how a stage begins; after them each so many-th shows how it goes on.
_IN_A_ROW: Final = 0.25
_EACH: Final = 16
#: Stages that are remembered. One that is forgotten begins anew, and has at most as many again.
_STAGES: Final = 1_024


class TracedPacks:
    """Counts the packs that this process hands out.

    Args:
        most: of a stage.
    """

    def __init__(self, most: int = MOST_PACKS) -> None:
        self._most = most
        self._counts: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def takes(self, audit_id: str, stage: str) -> bool:
        """Whether the next pack of a stage is traced."""
        with self._lock:
            handed_out, traced = self._counts.pop((audit_id, stage), (0, 0))
            due = handed_out < self._most * _IN_A_ROW or handed_out % _EACH == 0
            takes = traced < self._most and due
            self._counts[audit_id, stage] = handed_out + 1, traced + takes
            if len(self._counts) > _STAGES:
                self._counts.popitem(last=False)
            return takes
