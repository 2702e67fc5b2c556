"""A plan of training data in shards: every byte of every file in one of them, in order, and the same each time."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.corpus_search import CorpusFileFacts, CorpusPlan
from proctor.domain.search_shards import SearchPiece, all_pieces, can_be_cut, cut, pieces_of
from proctor.exposure.corpus import CorpusFile
from proctor.exposure.corpus import pieces_of as pieces_of_files

PLAN = "sha256:" + "1" * 64
FILES = st.lists(
    st.tuples(st.sampled_from(["a.jsonl", "b.JSON", "c.jsonl.gz", "d.txt", "e.parquet", "f.ndjson"]),
              st.integers(0, 5_000)),
    min_size=1, max_size=8,
)  # fmt: skip


def plan_of(**stages: list[tuple[str, int]]) -> CorpusPlan:
    return CorpusPlan(
        folder="/corpora",
        policy="verbatim_item",
        stages={
            stage: tuple(CorpusFileFacts(path=path, size_bytes=size, sample="s") for path, size in files)
            for stage, files in stages.items()
        },
    )


@given(FILES, FILES, st.integers(1, 3_000), st.integers(1, 1_000))
def test_every_byte_is_in_one_piece_of_one_shard(
    tune: list[tuple[str, int]], web: list[tuple[str, int]], shard_bytes: int, piece_bytes: int
) -> None:
    plan = plan_of(tune=tune, web=web)
    shards = cut(plan, PLAN, shard_bytes=shard_bytes, piece_bytes=piece_bytes)
    pieces = all_pieces(shards)
    assert pieces == tuple(pieces_of(plan, piece_bytes))
    of_file = defaultdict[tuple[str, int], list[SearchPiece]](list)
    for piece in pieces:
        of_file[piece.stage, piece.file].append(piece)
    assert list(of_file) == [(stage, place) for stage in ("tune", "web") for place in range(len(plan.stages[stage]))]
    for parts in of_file.values():
        assert (parts[0].begin, parts[-1].end) == (0, None)
        assert [part.begin for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert all(shard.pieces for shard in shards)
    assert cut(plan, PLAN, shard_bytes=shard_bytes, piece_bytes=piece_bytes) == shards


@given(FILES, st.integers(1, 3_000))
def test_a_shard_is_no_larger_than_it_should_be_but_for_a_file_that_cannot_be_cut(
    files: list[tuple[str, int]], shard_bytes: int
) -> None:
    plan = plan_of(tune=files)
    for shard in cut(plan, PLAN, shard_bytes=shard_bytes, piece_bytes=shard_bytes):
        sizes = [
            (plan.stages["tune"][piece.file].size_bytes if piece.end is None else piece.end) - piece.begin
            for piece in shard.pieces
        ]
        assert len(sizes) == 1 or sum(sizes) <= shard_bytes


@given(FILES, st.integers(1, 1_000))
def test_files_are_cut_as_the_command_cuts_them(files: list[tuple[str, int]], piece_bytes: int) -> None:
    theirs = pieces_of_files([CorpusFile(path, size, 0) for path, size in files], piece_bytes)
    mine = pieces_of(plan_of(tune=files), piece_bytes)
    assert [(piece.begin, piece.end) for piece in mine] == [(piece.begin, piece.end) for piece in theirs]


@pytest.mark.parametrize(
    "path", ["a.jsonl", "a.NDJSON", "a.json", "a.json.gz", "a.jsonl.zst", "a.txt", "a", "a.parquet"]
)
def test_what_can_be_cut_is_what_is_read_line_by_line_and_not_packed(path: str) -> None:
    file = CorpusFile(path, 1, 0)
    assert can_be_cut(path) == (file.kind == "lines" and not file.packing)


def test_many_small_files_are_many_shards_all_the_same() -> None:
    shards = cut(plan_of(tune=[("a.txt", 1)] * 2_500), PLAN)
    assert [len(shard.pieces) for shard in shards] == [1_000, 1_000, 500]
