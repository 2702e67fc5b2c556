"""One shard of a search of training data, and all of them as the one search that they are."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from proctor.domain.corpus_search import CorpusPlan, CorpusSearch
from proctor.domain.search_shards import SearchedParts, SearchedShard, SearchPiece, SearchShard, all_pieces, cut
from proctor.exposure.audit_search import Looked, files_of, findings, looked_for, searched_folder
from proctor.exposure.corpus import CorpusFile, Piece
from proctor.exposure.documents import text_columns
from proctor.exposure.piece_scan import PieceScanner
from proctor.exposure.scanned import PieceScan, Scanned, Total, load_piece_scan, save_piece_scan
from proctor.runtime.artifacts.chunks import StoredItems
from proctor.runtime.artifacts.store import ArtifactStore, get_model
from proctor.runtime.progress import note_step


class _Kept(NamedTuple):
    plan: CorpusPlan
    looked: Looked


def search_shard(store: ArtifactStore, shard: SearchShard, items: str, corpora: Path | None) -> SearchedShard:
    """Search the pieces of a shard; each piece's scan is stored.

    Args:
        store: where the plan and the items are, and the scans go.
        shard: it.
        items: digest of the ItemIndex.
        corpora: the operator's folder of training data.

    Raises:
        BadInputError: when a file is not what the plan says.
    """
    kept = _kept(store, shard.plan, items)  # type: ignore[arg-type]  # by identity
    files = _files(kept.plan, shard.pieces, corpora)
    scanner = PieceScanner(kept.looked.grams)
    scans = []
    for piece in shard.pieces:
        file = files[piece.stage, piece.file]
        columns = text_columns(file, kept.plan.text_columns)
        scan = scanner.scan(
            Piece(file, piece.begin, piece.end), columns, kept.plan.without_markup, lambda read: note_step()
        )
        scans.append(_put(store, scan))
    return SearchedShard(scans=tuple(scans))


def search_of_parts(
    store: ArtifactStore, plan_digest: str, parts: SearchedParts, items: str, corpora: Path | None
) -> CorpusSearch:
    """What the shards of a plan found together: the same as a search of all of it by one worker.

    Args:
        store: where everything is.
        plan_digest: of the CorpusPlan.
        parts: what came of its shards.
        items: digest of the ItemIndex.
        corpora: the operator's folder of training data.
    """
    kept = _kept(store, plan_digest, items)  # type: ignore[arg-type]  # by identity
    plan, looked = kept
    folder = searched_folder(plan, corpora)
    scans = [digest for one in parts.shards for digest in get_model(store, one, SearchedShard).scans]
    pieces = all_pieces(cut(plan, plan_digest))
    scanned: dict[str, Scanned] = {}
    for stage, facts in plan.stages.items():
        files = [CorpusFile(str(folder / fact.path), fact.size_bytes, 0) for fact in facts]
        mine = [place for place, piece in enumerate(pieces) if piece.stage == stage]
        total = Total(
            [Piece(files[pieces[place].file], pieces[place].begin, pieces[place].end) for place in mine],
            len(looked.grams.units),
            len(looked.grams.arrays.weights),
        )
        for number, place in enumerate(mine):
            total.add(number, _get(store, scans[place]))
            note_step()
        scanned[stage] = total.result()
    return findings(plan, looked, scanned, folder)


def _files(plan: CorpusPlan, pieces: Sequence[SearchPiece], corpora: Path | None) -> dict[tuple[str, int], CorpusFile]:
    found = {}
    for stage, place in dict.fromkeys((piece.stage, piece.file) for piece in pieces):
        (found[stage, place],) = files_of(plan, [plan.stages[stage][place]], corpora)
    return found


@lru_cache(maxsize=1)
def _kept(store: ArtifactStore, plan: str, items: str) -> _Kept:
    """The index of the search that this worker saw last, for its next shards."""
    read = get_model(store, plan, CorpusPlan)
    return _Kept(read, looked_for(read, StoredItems(store, items)))


def _put(store: ArtifactStore, scan: PieceScan) -> str:
    with tempfile.TemporaryDirectory(prefix="proctor-search-") as folder:
        path = Path(folder) / "scan"
        save_piece_scan(scan, path)
        return store.put(path.read_bytes())


def _get(store: ArtifactStore, digest: str) -> PieceScan:
    with tempfile.TemporaryDirectory(prefix="proctor-search-") as folder:
        path = Path(folder) / "scan"
        path.write_bytes(store.get(digest))
        scan = load_piece_scan(path)
    assert scan is not None
    return scan
