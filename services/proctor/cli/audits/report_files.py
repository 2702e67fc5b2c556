"""Where the report of a decided audit can be read on this machine."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import StoreError
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.files import write_atomic
from proctor.scorer.channels.registry import files_of
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, RunFacts


def report_page(event: DecisionEvent, home: Path, artifacts: ArtifactStore) -> Path:
    """The report's page, with its document beside it (`.json`), and what channels lay there.

    They are where the scorer wrote them, if it runs on this machine. If not, the document is fetched from the
    artifact store into `home`, and its page is made from it; the scorer's notes on the run are not on that page.

    Raises:
        StoreError: when the document is not in the store, or is another version's.
    """
    page = Path(event.report_path)
    if page.is_file() and page.with_suffix(".json").is_file():
        return page
    page = home / "reports" / event.audit_id / "report.html"
    document = artifacts.get(event.report_digest)
    try:
        report = Report.model_validate_json(document)
    except ValidationError:
        raise StoreError(
            f"the report of audit {event.audit_id} was written by another version of Proctor, and its scorer runs on "
            f"another machine; read it there: {event.report_path}"
        ) from None
    write_atomic(page.with_suffix(".json"), document)
    for name, content in files_of(report.evidence):
        write_atomic(page.with_name(name), content)
    # Of the file as it lies there: an earlier version's document would be written otherwise by this one.
    rendered = render(report, run=RunFacts(audit_id=event.audit_id), digest=event.report_digest)
    write_atomic(page, rendered.encode("utf-8"))
    return page
