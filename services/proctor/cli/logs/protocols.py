"""Printing what two logs record of their protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proctor.cli.terminal import say

if TYPE_CHECKING:
    from proctor.domain.recorded_card import ProtocolComparison

_UNKNOWN: Final = {"both": "not recorded by either log", "a": "not recorded by A", "b": "not recorded by B"}


def print_protocols(found: ProtocolComparison) -> None:
    """Print how many settings are equal, those that differ, and those that a log leaves out."""
    from proctor.evidence.paired.protocols import difference

    say(f"\nProtocols: {len(found.equal):,} recorded settings are equal.")
    for one in found.differs:
        say(f"  differs: {difference(one)}")
    for side, words in _UNKNOWN.items():
        names = [one.field for one in found.unknown if one.unknown_in == side]
        if names:
            say(f"  {words}: {', '.join(names)}")
