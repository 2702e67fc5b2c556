"""What the gRPC service takes at once, so that its memory does not depend on how long a stream is."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.domain.errors import ProctorError

#: The encoder embeds this many texts at a time; a smaller batch leaves it half empty.
_BATCH_MESSAGES: Final = 64
#: About 15 s of embedding on two cores if every message is reworded three times: how long a cancelled stream can
#: still hold up the others. One longer message is a batch of its own.
_BATCH_BYTES: Final = 64 << 10
_INTAKE_MESSAGES: Final = 256
_MESSAGE_BYTES: Final = 1 << 20


class LimitError(ProctorError):
    """More was asked of the service than it takes."""


class Limits(NamedTuple):
    """Bounds of one server; the defaults hold some 50 MiB of messages with every stream full."""

    max_streams: int = 16
    """Streams at once; a further one is refused with RESOURCE_EXHAUSTED."""
    max_message_bytes: int = _MESSAGE_BYTES
    """A larger message ends its stream with RESOURCE_EXHAUSTED."""
    max_in_flight: int = _INTAKE_MESSAGES
    """Messages of a stream that were read and not yet worked on; then reading stops until there is room."""
    max_in_flight_bytes: int = 2 * _MESSAGE_BYTES
    """The same in bytes."""
    max_calibration_pairs: int = 20_000
    """Pairs of one calibration, which cannot be forgotten before its end: about 5 KiB each."""
    batch_messages: int = _BATCH_MESSAGES
    """Messages that go through the encoder together."""
    batch_bytes: int = _BATCH_BYTES
    """A batch ends before it is larger than this."""
