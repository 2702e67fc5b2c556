"""What the gateway takes at once, so that its memory does not depend on who calls."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.domain.errors import ProctorError

MIB: Final = 1 << 20


class LimitError(ProctorError):
    """More was asked of the gateway than it takes."""


class Limits(NamedTuple):
    """Bounds of one gateway."""

    max_message_bytes: int = 32 * MIB
    """A suite with its files; a larger message ends its call with RESOURCE_EXHAUSTED."""
    max_watches: int = 96
    """Watches at once; a further one is refused with RESOURCE_EXHAUSTED."""
    max_other_calls: int = 32
    """Room that is left for all other calls beside those; each may hold a largest message."""
    threads: int = 4
    """In which the stores are asked."""
    max_submissions: int = 2
    """Submissions that are read at once; others wait, and leave threads to those who only look."""
