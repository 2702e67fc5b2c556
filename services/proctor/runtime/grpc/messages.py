"""Protobuf from callers: read so that what cannot be read is an answer, and what is odd costs no memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

#: Fields of one message, those of the messages in it among them. An empty one takes two bytes on the wire and forty or
#: more in memory, so that 32 MiB of them would be most of a gibibyte; no message that means anything has so many, and
#: to count them takes ten milliseconds.
MAX_FIELDS: Final = 10_000
#: Of messages that carry an id or a number. Larger ones are not looked into; in smaller ones a field that is too long
#: is told by its name.
SMALL_MESSAGE_BYTES: Final = 2 << 20
_VARINT: Final = 0
_FIXED64: Final = 1
_DELIMITED: Final = 2
_FIXED32: Final = 5
#: Of a varint on the wire, by protobuf's own rule.
_MAX_VARINT: Final = 10

M = TypeVar("M", bound=Message)


class Unreadable(NamedTuple):
    """Stands for a message that cannot be read."""

    why: str = "the message is no protobuf, or its text is not valid UTF-8 (half of a surrogate pair)"


def reader(kind: type[M], *, max_bytes: int | None = None) -> Callable[[bytes], M | Unreadable]:
    """A deserialiser that gives what cannot be read as such, instead of ending its call with an unknown error.

    Args:
        kind: of the messages.
        max_bytes: of a message; None for as many as the server takes of any.
    """

    def read(data: bytes) -> M | Unreadable:
        if max_bytes is not None and len(data) > max_bytes:
            return Unreadable(f"the message has {len(data):,} bytes, and {kind.DESCRIPTOR.name} at most {max_bytes:,}")
        if not has_fields_within(data, kind.DESCRIPTOR, MAX_FIELDS):
            return Unreadable(f"the message has more than {MAX_FIELDS:,} fields")
        try:
            return kind.FromString(data)
        except DecodeError:
            return Unreadable()

    return read


def has_fields_within(data: bytes, descriptor: Any, most: int) -> bool:
    """Whether a message on the wire has at most so many fields, with those of the messages in it.

    Nothing is built, and no more is looked at than it takes to tell. What breaks off is left to the parser to refuse.

    Args:
        data: the message.
        descriptor: its type, which says where there are messages in it.
        most: fields.
    """
    count = 0
    todo = [(0, len(data), descriptor)]
    while todo:
        place, end, kind = todo.pop()
        while place < end:
            count += 1
            if count > most:
                return False
            tag, place = _varint(data, place, end)
            wire = tag & 7
            if wire == _VARINT:
                _, place = _varint(data, place, end)
            elif wire == _FIXED64:
                place += 8
            elif wire == _FIXED32:
                place += 4
            elif wire == _DELIMITED:
                length, place = _varint(data, place, end)
                field = None if kind is None else kind.fields_by_number.get(tag >> 3)
                if field is not None and field.type == FieldDescriptor.TYPE_MESSAGE and length:
                    todo.append((place, min(place + length, end), field.message_type))
                place += length
            # The two ends of a group have nothing of their own, and others are none that the parser takes.
    return True


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """A number, and the place behind it; what breaks off ends at the end."""
    value = shift = 0
    for here in range(place, min(place + _MAX_VARINT, end)):
        byte = data[here]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, here + 1
        shift += 7
    return value, end
