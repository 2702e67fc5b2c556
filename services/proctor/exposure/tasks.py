"""The exposure room's Celery task: a search of training data for an audit's items.

Workers of the perturbation service handle it, from a queue of its own (`proctor.domain.messages.ALSO_HANDLED`).
"""

from __future__ import annotations

import importlib.util
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from proctor.domain.corpus_search import CorpusPlan, Searched
from proctor.domain.errors import BadInputError
from proctor.domain.messages import CorpusSearched, SearchCorpus, SearchShardOfCorpus, ShardOfCorpusSearched
from proctor.domain.search_shards import SearchedParts, SearchShard
from proctor.runtime.artifacts.chunks import StoredItems
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.messaging.tasks import handles, send, worker_artifacts, worker_settings
from proctor.runtime.settings import Settings

#: What was searched file by file is kept for a month.
_KEPT_S: Final = 30 * 24 * 3600.0
_NEEDED: Final = ("numba", "msgspec")


def _not_searched(message: SearchCorpus, cause: str) -> None:
    send(CorpusSearched(audit_id=message.audit_id, plan=message.plan, searched=Searched(error=cause)))


@handles(SearchCorpus, given_up=_not_searched, failed=_not_searched)
def search_corpus(message: SearchCorpus) -> None:
    """Search training data for the items of an audit: answer with what was found, or why nothing was searched."""
    send(found_for(message, worker_settings(), worker_artifacts()))


def found_for(message: SearchCorpus, settings: Settings, artifacts: ArtifactStore) -> CorpusSearched:
    """The answer to a message.

    Raises:
        BadInputError: when a package is missing, or the files are not what the plan says.
        ProctorError: when it cannot be searched, with the mend.
    """
    _be_able(settings.home)
    # Loaded for the first search, and not with a worker that rewords.
    from proctor.exposure.audit_search import search
    from proctor.exposure.shard_search import search_of_parts

    if message.parts is not None:
        parts = get_model(artifacts, message.parts, SearchedParts)
        found = search_of_parts(artifacts, message.plan, parts, message.items, settings.corpora)
    else:
        plan, items = get_model(artifacts, message.plan, CorpusPlan), StoredItems(artifacts, message.items)
        kept = settings.home / "searches"
        forget_old(kept, time.time() - _KEPT_S)
        found = search(plan, items, corpora=settings.corpora, state=kept)
    return CorpusSearched(
        audit_id=message.audit_id, plan=message.plan, searched=Searched(found=put_model(artifacts, found))
    )


def _shard_lost(message: SearchShardOfCorpus, cause: str) -> None:
    send(_of_shard(message, error=cause))


@handles(SearchShardOfCorpus, given_up=_shard_lost, failed=_shard_lost, often=True)
def search_shard_of_corpus(message: SearchShardOfCorpus) -> None:
    """Search a shard of training data: answer with what was found, or why nothing was."""
    try:
        answer = shard_found_for(message, worker_settings(), worker_artifacts())
    except BadInputError as error:
        # No worker would find anything else there.
        answer = _of_shard(message, error=str(error), retryable=False)
    send(answer)


def shard_found_for(
    message: SearchShardOfCorpus, settings: Settings, artifacts: ArtifactStore
) -> ShardOfCorpusSearched:
    """The answer to a message.

    Raises:
        BadInputError: when a package is missing, or the files are not what the plan says.
    """
    _be_able(settings.home)
    from proctor.exposure.shard_search import search_shard

    shard = get_model(artifacts, message.shard, SearchShard)
    found = search_shard(artifacts, shard, message.items, settings.corpora)
    return _of_shard(message, found=put_model(artifacts, found))


def _of_shard(message: SearchShardOfCorpus, **said: Any) -> ShardOfCorpusSearched:
    return ShardOfCorpusSearched(
        audit_id=message.audit_id, plan=message.plan, shard_id=message.shard_id, attempt=message.attempt, **said
    )


def _be_able(home: Path) -> None:
    """Raises BadInputError where a package is missing."""
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise BadInputError(f"searching needs {' and '.join(missing)}: pip install 'proctor[exposure]'")
    _keep_what_is_compiled(home)


def _keep_what_is_compiled(home: Path) -> None:
    """Have numba keep its machine code in the home where it cannot beside the source, as in an image."""
    if not os.access(Path(__file__).parent, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(home / "compiled"))


def forget_old(kept: Path, before_s: float) -> None:
    """Remove what was kept of searches before a moment. Nothing is lost with it but time."""
    if not kept.is_dir():
        return
    for path in kept.iterdir():
        # Another worker may do the same.
        with suppress(OSError):
            if path.stat().st_mtime < before_s:
                path.unlink()
