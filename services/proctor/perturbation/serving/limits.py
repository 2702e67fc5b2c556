"""What the gRPC service takes at once, so that its memory does not depend on how long a stream is."""

from __future__ import annotations

from typing import Final, NamedTuple

#: The encoder embeds this many texts at a time; a smaller batch leaves it half empty.
_BATCH_MESSAGES: Final = 64
#: About 15 s of embedding on two cores if every message is reworded three times: how long a cancelled stream can
#: still hold up the others. One longer message is a batch of its own.
_BATCH_BYTES: Final = 64 << 10
#: Streams at once: of all callers, and of each where they have tokens of their own.
MAX_STREAMS: Final = 16
MAX_STREAMS_EACH: Final = 8
MAX_MESSAGE_BYTES: Final = 1 << 20
#: What a stream reads ahead of the work: some batches, and room for one message of any size.
MAX_IN_FLIGHT: Final = 256
MAX_IN_FLIGHT_BYTES: Final = 2 * MAX_MESSAGE_BYTES
#: What a calibration keeps until its end: about 5 KiB a pair with its vectors, or few pairs of any size.
MAX_CALIBRATION_PAIRS: Final = 20_000
MAX_CALIBRATION_BYTES: Final = 32 << 20
MAX_CALIBRATIONS: Final = 2
#: What a gate with a margin keeps to the end of its stream: about 2 KiB a question with its vector.
MAX_QUESTIONS: Final = 20_000
MAX_QUESTION_BYTES: Final = 32 << 20


class Limits(NamedTuple):
    """Bounds of one server; the defaults hold some 50 MiB of messages with every stream full."""

    max_streams: int = MAX_STREAMS
    """Streams at once; a further one is refused with RESOURCE_EXHAUSTED."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """A larger message ends its stream with RESOURCE_EXHAUSTED."""
    max_in_flight: int = MAX_IN_FLIGHT
    """Messages of a stream that were read and not yet worked on; then reading stops until there is room."""
    max_in_flight_bytes: int = MAX_IN_FLIGHT_BYTES
    """The same in bytes."""
    max_calibration_pairs: int = MAX_CALIBRATION_PAIRS
    """Pairs of one calibration, which cannot be forgotten before its end: about 5 KiB each."""
    max_calibration_bytes: int = MAX_CALIBRATION_BYTES
    """The same in bytes of their messages: a pair may be as large as a message."""
    max_calibrations: int = MAX_CALIBRATIONS
    """Calibrations at once, of all streams: each keeps what it is sent."""
    max_streams_each: int = MAX_STREAMS_EACH
    """Streams at once of one caller, where callers have tokens of their own."""
    max_questions: int = MAX_QUESTIONS
    """Questions of a benchmark that a stream brings along for a margin to them, in which each counts once."""
    max_question_bytes: int = MAX_QUESTION_BYTES
    """The same in bytes of text."""
    batch_messages: int = _BATCH_MESSAGES
    """Messages that go through the encoder together."""
    batch_bytes: int = _BATCH_BYTES
    """A batch ends before it is larger than this."""
