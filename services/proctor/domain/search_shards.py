"""A search of training data in shards, which workers of several machines take: how a plan is cut, and what comes back.

Each shard is some pieces of files: a file, or a range of one whose lines are read apart. All documents here travel by
digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from proctor.domain.base import Frozen
from proctor.domain.corpus_search import CorpusPlan

#: A shard takes a worker seconds to a minute; a file that cannot be cut, as long as it takes.
SHARD_BYTES: Final = 256 << 20
_PIECE_BYTES: Final = 32 << 20
_SHARD_PIECES: Final = 1_000
#: Of files of which a range of lines can be read: JSON lines that are not packed.
_CUT: Final = (".jsonl", ".ndjson", ".json")


class SearchPiece(Frozen):
    """A file, or a range of its bytes."""

    stage: str
    file: int
    """Its place among the plan's files of the stage."""
    begin: int = 0
    """The first byte, which may be in the middle of a line: that line is of the piece before."""
    end: int | None = None
    """The byte at which its last line may begin at the latest; None for the file's end."""


class SearchShard(Frozen):
    """What one worker searches at a time."""

    plan: str
    """Digest of the CorpusPlan."""
    pieces: tuple[SearchPiece, ...]


class SearchedShard(Frozen):
    """What came of a shard: of each piece, the digest of its scan."""

    scans: tuple[str, ...]


class SearchedParts(Frozen):
    """What came of all shards of a plan, in its order."""

    shards: tuple[str, ...]
    """Digests of a SearchedShard each."""


def can_be_cut(path: str) -> bool:
    """Whether a range of a file's lines can be read."""
    return path.lower().endswith(_CUT)


def pieces_of(plan: CorpusPlan, piece_bytes: int = _PIECE_BYTES) -> Iterator[SearchPiece]:
    """The plan's files as pieces, in their order."""
    for stage in sorted(plan.stages):
        for place, file in enumerate(plan.stages[stage]):
            if not can_be_cut(file.path) or file.size_bytes <= piece_bytes:
                yield SearchPiece(stage=stage, file=place)
                continue
            for begin, end in pairwise([*range(0, file.size_bytes, piece_bytes), None]):
                yield SearchPiece(stage=stage, file=place, begin=begin or 0, end=end)


def cut(
    plan: CorpusPlan, digest: str, *, shard_bytes: int = SHARD_BYTES, piece_bytes: int = _PIECE_BYTES
) -> tuple[SearchShard, ...]:
    """The shards of a plan, in its order. The same plan is cut in the same way.

    Args:
        plan: it.
        digest: the plan's.
        shard_bytes: of a shard, about.
        piece_bytes: of a piece of a file that can be cut.
    """
    shards: list[SearchShard] = []
    pieces: list[SearchPiece] = []
    size = 0
    for piece in pieces_of(plan, piece_bytes):
        own = _size(plan, piece)
        if pieces and (size + own > shard_bytes or len(pieces) == _SHARD_PIECES):
            shards.append(SearchShard(plan=digest, pieces=tuple(pieces)))
            pieces, size = [], 0
        pieces.append(piece)
        size += own
    return (*shards, SearchShard(plan=digest, pieces=tuple(pieces))) if pieces else tuple(shards)


def all_pieces(shards: Sequence[SearchShard]) -> tuple[SearchPiece, ...]:
    """The pieces of shards, in their order."""
    return tuple(piece for shard in shards for piece in shard.pieces)


def _size(plan: CorpusPlan, piece: SearchPiece) -> int:
    end = plan.stages[piece.stage][piece.file].size_bytes if piece.end is None else piece.end
    return end - piece.begin
