"""When each dataset of one's own is due to be rotated: read from the states beside them at a scrape.

Names datasets, as scores name models: the operator's own files, and no more of them than MAX_DATASETS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from proctor.domain.rotation import Rotation
from proctor.runtime.metrics.catalogue import DATASET_HELD_OUT, DATASET_ROTATION_DUE
from proctor.runtime.metrics.scores import label_of
from proctor.runtime.rotations import rotations_in

#: They change once in months.
_FRESH_S: Final = 60.0


class RotationsCollector(Collector):
    """The datasets of a folder; the same on every router that has it."""

    def __init__(self, folder: Path, *, fresh_s: float = _FRESH_S) -> None:
        self._folder, self._fresh_s = folder, fresh_s
        self._one_at_a_time = threading.Lock()
        self._seen: tuple[float, Iterable[tuple[str, Rotation]]] = (float("-inf"), ())

    def collect(self) -> Iterator[Family]:
        """Two samples a dataset."""
        due = GaugeMetricFamily(
            DATASET_ROTATION_DUE.name, DATASET_ROTATION_DUE.help, labels=DATASET_ROTATION_DUE.labels
        )
        held = GaugeMetricFamily(DATASET_HELD_OUT.name, DATASET_HELD_OUT.help, labels=DATASET_HELD_OUT.labels)
        for name, state in self._states():
            day = datetime(state.due.year, state.due.month, state.due.day, tzinfo=UTC)
            due.add_metric([label_of(name)], day.timestamp())
            held.add_metric([label_of(name)], len(state.pool))
        yield from (due, held)

    def _states(self) -> Iterable[tuple[str, Rotation]]:
        with self._one_at_a_time:
            if time.monotonic() - self._seen[0] > self._fresh_s:
                self._seen = time.monotonic(), rotations_in(self._folder)
            return self._seen[1]
