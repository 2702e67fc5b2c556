"""The archive that an `.eval` log of Inspect is, inflated to the end and counted before anybody takes it into memory.

What an archive says of its members' sizes is not believed: the reader that comes after inflates what is there. It also
finds the members by the archive's last record; an archive that two readers could take for two others is refused.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from proctor.domain.errors import BadInputError
from proctor.formats.faults import shown

#: Unpacked, with the messages and events that are not read; a small archive can hold any amount of zeros.
MAX_UNPACKED_BYTES: Final = 1 << 30
#: One byte of a log is not worth more of them, however often its samples say the same.
MAX_INFLATION: Final = 1000
_FREE_BYTES: Final = 16 << 20
_CHUNK_BYTES: Final = 1 << 16
_STORED, _DEFLATED, _ZSTANDARD = 0, 8, 93
_MEMBER: Final = struct.Struct("<4s22xHH")
_END: Final = struct.Struct("<4s8xIIH")


def check_archive(path: Path) -> None:
    """Inflate every member, and keep nothing.

    Raises:
        BadInputError: when it is no archive, no log of Inspect, holds more than is read, or says of itself what is not
            so.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
            members = archive.infolist()
            names = {member.filename for member in members}
            if not names & {"header.json", "_journal/start.json"}:
                raise BadInputError(
                    f"{path} is a zip archive with {shown(sorted(names)[:3])} and not an .eval log of Inspect, which "
                    "has a header.json"
                )
            _check_end(path, stream)
            _count(path, stream, members)
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, struct.error) as error:
        raise BadInputError(
            f"{path} cannot be read as a zip archive, which an .eval log is: {shown(str(error))[1:-1]}"
        ) from None


def _check_end(path: Path, stream: BinaryIO) -> None:
    """Refuse what lets readers find different members: a comment, something before the archive, 65,535 members."""
    at = stream.seek(-_END.size, 2)
    mark, directory_bytes, directory, comment = _END.unpack(stream.read(_END.size))
    if mark != b"PK\x05\x06" or comment or directory + directory_bytes != at:
        raise BadInputError(
            f"{path} does not end as an .eval log of Inspect does: is it whole, and of less than 65,535 samples?"
        )


def _count(path: Path, stream: BinaryIO, members: list[zipfile.ZipInfo]) -> None:
    unpacked = 0
    allowed = min(MAX_UNPACKED_BYTES, max(_FREE_BYTES, MAX_INFLATION * path.stat().st_size))
    for member in members:
        found = 0
        for size in _inflated(stream, member):
            found += size
            if found > member.file_size:
                break
            if unpacked + found > allowed:
                raise BadInputError(
                    f"{path} unpacks to more than {allowed >> 20} MiB, the most for an archive of its size; is it a "
                    "log of one run?"
                )
        if found != member.file_size:
            holds = "more" if found > member.file_size else f"{found:,}"
            raise BadInputError(
                f"{path}: {shown(member.filename)} says that it holds {member.file_size:,} bytes, and holds {holds}: "
                "the archive is damaged, or was made to deceive"
            )
        unpacked += found


def _inflated(stream: BinaryIO, member: zipfile.ZipInfo) -> Iterator[int]:
    """The sizes of a member's pieces as they are inflated, none of them large."""
    stream.seek(member.header_offset)
    mark, name_bytes, extra_bytes = _MEMBER.unpack(stream.read(_MEMBER.size))
    if mark != b"PK\x03\x04":
        raise ValueError(f"there is no member where {member.filename!r} should be")
    stream.seek(name_bytes + extra_bytes, 1)
    packed = _Packed(stream, member.compress_size)
    if member.compress_type == _STORED:
        while piece := packed.read(_CHUNK_BYTES):
            yield len(piece)
    elif member.compress_type == _DEFLATED:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        while not inflater.eof and (piece := inflater.unconsumed_tail or packed.read(_CHUNK_BYTES)):
            yield len(inflater.decompress(piece, _CHUNK_BYTES))
    elif member.compress_type == _ZSTANDARD:
        yield from _of_zstandard(packed)
    else:
        raise NotImplementedError(f"{member.filename!r} is compressed by method {member.compress_type}")
    if packed.cut_off:
        raise ValueError(f"{member.filename!r} is cut off")


def _of_zstandard(packed: _Packed) -> Iterator[int]:
    # Comes with inspect_ai, whose reader needs it for such a member too.
    try:
        import zstandard
    except ImportError:
        raise NotImplementedError("its members are compressed by zstandard: pip install 'proctor[inspect]'") from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(cast(IO[bytes], packed), read_across_frames=True) as reader:
            while piece := reader.read(_CHUNK_BYTES):
                yield len(piece)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


class _Packed:
    """The compressed bytes of one member."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._left = size
        self.cut_off = False

    def read(self, size: int) -> bytes:
        """The next bytes; none at the member's end."""
        piece = self._stream.read(min(size, self._left))
        self.cut_off = self._left > 0 and not piece
        self._left -= len(piece)
        return piece
