"""Looking for versions of which no webhook told: MLflow's are delivered once, by a thread, and may be lost.

Each round reads the page of the newest versions, and some more where the round before it stopped, until all that was
created since the trigger file's `since` was read; then it begins again. So a round is bounded, what one round or
process did not come to another does, and a tag that is set later is seen. Nothing from before `since` is ever started:
a first start asks for no more than that.
"""

from __future__ import annotations

import json
import logging
from typing import Final, NamedTuple

from proctor.domain.triggers import Triggers
from proctor.registry.mlflow_client import RegistryRefusedError
from proctor.registry.requesting import ask_for, requests_of
from proctor.registry.version_source import MlflowVersions, VersionPage
from proctor.runtime.records.requests import AuditRequests

logger = logging.getLogger(__name__)

#: Pages of 200 that a round reads beside the newest.
PAGES_A_ROUND: Final = 10
ORIGIN: Final = "reconciler"
_CURSOR: Final = "mlflow"


class Round(NamedTuple):
    """What a round came to."""

    versions: int
    asked: int
    """Audits that were asked for."""
    ended: bool
    """Whether all that was created since `since` has been read."""


def reconcile(
    source: MlflowVersions, triggers: Triggers, requests: AuditRequests, *, pages: int = PAGES_A_ROUND
) -> Round:
    """Ask for the audits that no webhook asked for; one round.

    Two processes that do it at once read the same twice, and ask for each audit once.

    Raises:
        RegistryUnavailableError: when the registry does not answer; what was asked for stays.
        StoreError: when the record store does not.
    """
    newest = source.page(triggers.since)
    versions, asked = len(newest.versions), _ask(newest, triggers, requests)
    token = _kept(requests, triggers) or newest.token
    for _ in range(pages if newest.token else 0):
        if not token:
            break
        try:
            page = source.page(triggers.since, token)
        except RegistryRefusedError as error:
            logger.warning("the registry does not know its page any more, and is read from the beginning: %s", error)
            token = ""
            break
        versions, asked, token = versions + len(page.versions), asked + _ask(page, triggers, requests), page.token
    ended = not newest.token or not token
    requests.move_cursor(_CURSOR, "" if ended else json.dumps({"triggers": triggers.digest, "token": token}))
    return Round(versions, asked, ended)


def _ask(page: VersionPage, triggers: Triggers, requests: AuditRequests) -> int:
    return ask_for(requests, [one for version in page.versions for one in requests_of(triggers, version, ORIGIN)])


def _kept(requests: AuditRequests, triggers: Triggers) -> str:
    """Where the round before stopped; empty where other triggers were looked for."""
    try:
        kept = json.loads(requests.cursor(_CURSOR) or "{}")
    except ValueError:
        return ""
    return str(kept["token"]) if kept.get("triggers") == triggers.digest and "token" in kept else ""
