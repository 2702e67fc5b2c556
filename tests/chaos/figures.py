"""What a chaos run says of itself, from the log of its processes. The proof that nothing was lost needs none of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class Recovery(NamedTuple):
    """How long shards took that somebody died with."""

    shards: int
    p50_s: float
    p99_s: float
    longest_s: float


def duplicates_suppressed(events: Sequence[dict[str, Any]]) -> int:
    """Answers, and failures, that came too late or twice, and that the ledger let go by."""
    return sum(row["event"] in ("record", "fail") and row["outcome"] in ("duplicate", "stale") for row in events)


def recovery(events: Sequence[dict[str, Any]]) -> Recovery:
    """From the death of a process that had a shard in hand to the answer that counts for that shard."""
    in_hand: dict[int, tuple[str, str]] = {}
    died: dict[tuple[str, str], float] = {}
    took: list[float] = []
    for row in sorted(events, key=lambda row: float(row["at"])):
        if row["event"] == "begin":
            in_hand[row["pid"]] = (row["audit"], row["shard"])
        elif row["event"] == "end":
            in_hand.pop(row["pid"], None)
        elif row["event"] in ("crash", "killed"):
            for pid in row.get("victims", [row["pid"]]):
                if (shard := in_hand.pop(pid, None)) is not None:
                    died.setdefault(shard, row["at"])
        elif row["event"] == "record" and row["outcome"] in ("recorded", "complete"):
            began = died.pop((row["audit"], row["shard"]), None)
            if began is not None:
                took.append(row["at"] - began)
    took.sort()
    return Recovery(len(took), _quantile(took, 0.5), _quantile(took, 0.99), took[-1] if took else 0.0)


def crashes(events: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How often a worker died at each boundary."""
    found: dict[str, int] = {}
    for row in events:
        if row["event"] == "crash":
            found[row["point"]] = found.get(row["point"], 0) + 1
    return found


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile; 0 of nothing."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
