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
    in_hand: dict[int, set[tuple[str, str]]] = {}
    died: dict[tuple[str, str], float] = {}
    took: list[float] = []
    for row in sorted(events, key=lambda row: float(row["at"])):
        if row["event"] == "begin":
            in_hand.setdefault(row["pid"], set()).add((row["audit"], row["shard"]))
        elif row["event"] == "end":
            in_hand.get(row["pid"], set()).discard((row["audit"], row["shard"]))
        elif row["event"] in ("crash", "killed"):
            for pid in row.get("victims", [row["pid"]]):
                for shard in in_hand.pop(pid, ()):
                    died.setdefault(shard, row["at"])
        elif row["event"] == "record" and row["outcome"] in ("recorded", "complete"):
            began = died.pop((row["audit"], row["shard"]), None)
            if began is not None:
                took.append(row["at"] - began)
    took.sort()
    return Recovery(len(took), _quantile(took, 0.5), _quantile(took, 0.99), took[-1] if took else 0.0)


def outages(events: Sequence[dict[str, Any]]) -> int:
    """Times that a pool's breaker opened: its servers were away, and had not been just before."""
    return sum(row["event"] == "away" and row["since_s"] == 0 for row in events)


def lost_attempts(events: Sequence[dict[str, Any]]) -> int:
    """Attempts that ended with their worker, or with an endpoint that went away."""
    return sum(row["event"] == "fail" and row["setback"] == "lost" and row["outcome"] == "queued" for row in events)


def handed_back(events: Sequence[dict[str, Any]]) -> int:
    """Shards that a leaving worker gave back."""
    return sum(row["event"] == "end" and row["handed_back"] for row in events)


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
