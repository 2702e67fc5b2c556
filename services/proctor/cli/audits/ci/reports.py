"""The report behind an outcome, where it is at hand, and what is written where there is none to come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from proctor.cli.audits.ci.files import CiFiles
from proctor.cli.audits.ci.outcome import undecided
from proctor.domain.errors import ProctorError, StoreError
from proctor.domain.suite import Suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import AuditDesk
from proctor.gateway.status import AuditStatus
from proctor.scorer.report.document import Report


def report_of(audits: AuditDesk, ended: AuditStatus) -> Report | None:
    """The report of an audit on this machine's stores; None where it is behind a service, or another version's."""
    if ended.decision is None or not isinstance(audits, LocalDesk):
        return None
    try:
        return _read(audits.artifacts().get(ended.decision.report_digest))
    except StoreError:
        return None


def report_beside(page: Path) -> Report | None:
    """The report whose page lies there."""
    return _read(page.with_suffix(".json").read_bytes())


@contextmanager
def told_of_failure(ci: CiFiles, suite: Suite) -> Iterator[None]:
    """Write what there is to say where the block ends without a decision: no file reads like an audit of yesterday."""
    try:
        yield
    except ProctorError as error:
        if ci:
            ci.write(undecided(suite.audit_suite_id, suite.model.model_id, str(error)))
        raise


def _read(document: bytes) -> Report | None:
    try:
        return Report.model_validate_json(document)
    except ValidationError:
        return None
