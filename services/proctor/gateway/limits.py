"""What the gateway takes at once, so that its memory does not depend on who calls."""

from __future__ import annotations

from typing import Final, NamedTuple

MIB: Final = 1 << 20
#: Names of files in a suite are 4,096 characters long at most, of four bytes each.
MAX_FILE_NAME_BYTES: Final = 16 << 10
#: A suite names three files.
MAX_FILES: Final = 3
#: Of a suite's JSON, which is a few kilobytes. Smaller than what is read from a file, because it stays on record and
#: every list of audits reads it again.
MAX_SUITE_BYTES: Final = 256 << 10
#: Seconds that a submission has to arrive, whose place others wait for: 32 MiB at 2 Mbit/s.
UPLOAD_S: Final = 120.0


#: A suite with its files.
MAX_MESSAGE_BYTES: Final = 32 * MIB
#: Watches at once, and all other calls beside them: of all callers, and of each where they have tokens of their own.
MAX_WATCHES: Final = 96
MAX_WATCHES_EACH: Final = 32
MAX_OTHER_CALLS: Final = 32
MAX_OTHER_CALLS_EACH: Final = 16
#: A look takes a millisecond or two of one thread of four.
MAX_LOOKS_PER_S: Final = 50.0
#: Small messages that are read at once: each may be as large as a submission before it is refused, twice over.
MAX_MESSAGES: Final = 2
#: A submission takes three times its size while it comes in, and up to 400 MiB while its items are in memory.
MAX_UPLOADS: Final = 2
MAX_SUBMISSIONS: Final = 1


class Limits(NamedTuple):
    """Bounds of one gateway: with all of them reached at once, it stays below a gibibyte."""

    max_message_bytes: int = MAX_MESSAGE_BYTES
    """A larger message ends its call with RESOURCE_EXHAUSTED."""
    max_watches: int = MAX_WATCHES
    """Watches at once; a further one is refused with RESOURCE_EXHAUSTED."""
    max_watches_each: int = MAX_WATCHES_EACH
    """The same of one caller, where callers have tokens of their own."""
    max_other_calls: int = MAX_OTHER_CALLS
    """All other calls beside those."""
    max_other_calls_each: int = MAX_OTHER_CALLS_EACH
    """The same of one caller, where callers have tokens of their own."""
    max_looks_per_s: float = MAX_LOOKS_PER_S
    """Looks at the stores for all watches together: where there are many, each looks less often."""
    threads: int = 4
    """In which the stores are asked."""
    max_messages: int = MAX_MESSAGES
    """Small messages that are read at once."""
    max_uploads: int = MAX_UPLOADS
    """Submissions whose messages are in memory; others are not read until it is their turn."""
    max_submissions: int = MAX_SUBMISSIONS
    """Of those, the ones whose items are in memory; the other one comes in meanwhile."""
