"""What a check of a chaos run found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Findings:
    """What a check found. `violations` is empty where all invariants hold."""

    violations: list[str] = field(default_factory=list)
    audits: int = 0
    trials: int = 0
    lost: int = 0
    """Accepted trials that are neither graded nor dead-lettered."""
    counted_twice: int = 0
    dead_lettered: int = 0
    shards: int = 0
    graded_ahead: int = 0
    """Shards whose grades were in the scored manifest, and not worked out at its end."""
    searched: int = 0
    """Shards of training data whose search is on record."""
    looks: int = 0
    """Looks at sequential audits that their reports have."""
    stopped: int = 0
    """Sequential audits that ended before their whole sample was asked."""
    postdated: int = 0
    """Messages that a worker with a clock ahead took and died with: they come back when its time has come."""
    decisions: Counter[int] = field(default_factory=Counter)
    """Decisions of an audit → audits."""
    reports_compared: int = 0
    reports_that_differ: int = 0

    def broken(self, number: int, audit: str, what: str) -> None:
        """Note a violation of an invariant."""
        self.violations.append(f"invariant {number}, {audit}: {what}")

    def raise_if_broken(self) -> None:
        """Raises AssertionError with the first violations."""
        assert not self.violations, "\n".join(self.violations[:20])
