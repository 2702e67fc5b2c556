"""The exposure room's Celery task: a search of training data for an audit's items.

Workers of the perturbation service handle it, from a queue of its own (`proctor.domain.messages.ALSO_HANDLED`).
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

from proctor.domain.corpus_search import CorpusPlan, Searched
from proctor.domain.errors import BadInputError
from proctor.domain.messages import CorpusSearched, SearchCorpus
from proctor.runtime.artifacts.chunks import StoredItems
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.messaging.tasks import handles, send, worker_artifacts, worker_settings
from proctor.runtime.settings import Settings

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
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise BadInputError(f"searching needs {' and '.join(missing)}: pip install 'proctor[exposure]'")
    _keep_what_is_compiled(settings.home)
    # Loaded for the first search, and not with a worker that rewords.
    from proctor.exposure.audit_search import search

    plan = get_model(artifacts, message.plan, CorpusPlan)
    found = search(
        plan, StoredItems(artifacts, message.items), corpora=settings.corpora, state=kept_searches(settings.home)
    )
    return CorpusSearched(
        audit_id=message.audit_id, plan=message.plan, searched=Searched(found=put_model(artifacts, found))
    )


def _keep_what_is_compiled(home: Path) -> None:
    """Have numba keep its machine code in the home where it cannot beside the source, as in an image."""
    if not os.access(Path(__file__).parent, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(home / "compiled"))


def kept_searches(home: Path) -> Path:
    """Folder of what was searched, file by file. Nothing is lost with it but time."""
    return home / "searches"
