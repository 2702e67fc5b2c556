"""Taking in audits that were decided before their figures were kept: from their reports, so many at a time."""

from __future__ import annotations

import json
import logging
from typing import NamedTuple

from pydantic import ValidationError

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import ProctorError
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.records.measures import Undone
from proctor.runtime.records.store import Records
from proctor.scorer.measuring import measured
from proctor.scorer.report.document import Report

logger = logging.getLogger(__name__)


class TakenIn(NamedTuple):
    """What came of a round."""

    measured: int
    without: int
    """Audits whose rewordings were not compared, so that there is nothing to keep."""
    unreadable: tuple[str, ...]
    """Audits whose report is not there, or is not what was decided on."""
    more: bool
    """Whether the round ended at its limit."""


def take_in(records: Records, artifacts: ArtifactStore, *, limit: int) -> TakenIn:
    """Read the reports of at most `limit` decided audits that have no figures, and keep those.

    Twice does no harm: what is there stays.
    """
    done, without, unreadable, seen = 0, 0, list[str](), 0
    for undone in records.measures.each_undone(limit=limit):
        seen += 1
        try:
            found = measured(_report(undone, artifacts))
            if found is None:
                without += 1
                continue
            records.measures.add(undone.audit_id, found, decided_at=undone.decided_at)
            done += 1
        except (ProctorError, ValidationError, ValueError, LookupError) as error:
            logger.warning("audit %s has no figures: %s", undone.audit_id, type(error).__name__)
            unreadable.append(undone.audit_id)
    return TakenIn(done, without, tuple(unreadable), seen >= limit)


def _report(undone: Undone, artifacts: ArtifactStore) -> Report:
    digest = json.loads(undone.event)["reportDigest"]
    document = artifacts.get(digest)
    if bytes_digest(document) != digest:
        raise ValueError("the report is not the one that was decided on")
    return Report.model_validate_json(document)
