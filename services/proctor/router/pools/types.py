"""What the pools give: what a claim got, and what an unreachable endpoint means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Claim(NamedTuple):
    """What a claim got."""

    granted: tuple[str, ...]
    """Shard ids that hold a credit now, in the order in which they were asked for."""
    probing: bool
    """Whether the one that was granted is to show that the servers are back."""
    waiting: tuple[str, ...]
    """Other audits that could have more now: whoever claims for them gets it."""


class Outlook(NamedTuple):
    """What is known of a pool before anything is claimed of it."""

    pace_s: float | None
    """Seconds a trial of a message; None while nothing is known."""
    others: Mapping[str, int]
    """Other pools that have work → packs that they want."""


class Outage(NamedTuple):
    """What an unreachable endpoint means."""

    counts: bool
    """Whether this is a loss of its shard; False where the shard was only probing."""
    since_s: float
    """How long the servers have been away without a break."""
