"""What can be done with audits from outside, on the stores of this machine. The service and the commands are thin."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from kombu.exceptions import OperationalError

from proctor.domain.errors import StackError, StoreError
from proctor.domain.messages import Message, Priority, StartAudit, TakeOn
from proctor.domain.problems import visible
from proctor.domain.suite import Suite
from proctor.formats.suites import load_suite
from proctor.gateway.attachments import gather_attached
from proctor.gateway.desk import DEFAULT_LIMIT, Submitted, UnknownAuditError
from proctor.gateway.reading import Counts, read_status
from proctor.gateway.status import AuditStatus
from proctor.gateway.watching import watch
from proctor.router import control
from proctor.router.audit import AuditData, gather, submit, view
from proctor.router.endpoints import paraphraser_notes
from proctor.router.ledger import Ledger
from proctor.router.pools import Pools
from proctor.runtime.artifacts import ArtifactStore, open_artifacts
from proctor.runtime.records import Records
from proctor.runtime.settings import Settings
from proctor.runtime.tasks import configure, send

#: Ids that a message names.
_NAMED: Final = 5


@dataclasses.dataclass(frozen=True)
class LocalDesk:
    """Audits on the stores that the settings name; an `AuditDesk`."""

    settings: Settings
    records: Records
    counts: Counts
    artifacts: Callable[[], ArtifactStore]
    """Opened only where something is stored."""
    send: Callable[[Message], None]

    def submit(self, suite_file: Path, priority: Priority = Priority.NORMAL) -> Submitted:
        """See `AuditDesk`. Paths in the suite are relative to its file's folder."""
        suite = load_suite(suite_file)
        data = gather(suite, suite_file.parent, self.settings.bundle, self.settings.benchmarks)
        return self.begin(data, priority)

    def submit_attached(self, suite: Suite, files: Mapping[str, bytes], priority: Priority) -> Submitted:
        """The same for a suite that came with its files; no file of this machine is read under a name in it."""
        return self.begin(gather_attached(suite, files, self.settings.bundle, self.settings.benchmarks), priority)

    def begin(self, data: AuditData, priority: Priority = Priority.NORMAL) -> Submitted:
        """The same for a suite with its data."""
        stores = self.settings, self.records, self.artifacts()
        record, resumed = submit(data, *stores, priority=priority)
        self._tell(StartAudit(audit_id=record.audit_id), record.audit_id)
        notes = (*data.notes, *paraphraser_notes(data.suite, self.settings))
        return Submitted(self.look(record.audit_id), record.state if resumed else None, notes)

    def status(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return self.look(self.find(audit))

    def audits(self, limit: int = DEFAULT_LIMIT) -> list[AuditStatus]:
        """See `AuditDesk`. Where the ledger cannot be asked, they are without counts."""
        counts: Counts | None = self.counts
        found = []
        for record in self.records.audits(limit=limit):
            audit = view(self.records, record.audit_id)
            try:
                found.append(read_status(audit, self.records, counts))
            except StoreError:
                # Not asked again for each of the others: it takes its time not to answer.
                counts = None
                found.append(read_status(audit, self.records, None))
        return found

    def watch(self, audit: str) -> Iterator[AuditStatus]:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        for (status,) in watch(lambda: [self.look(audit_id)]):
            yield status

    def pause(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        control.pause(self.records, audit_id)
        self._let_know(audit_id)
        return self.look(audit_id)

    def resume(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        control.resume(self.records, audit_id)
        self._tell(TakeOn(audit_id=audit_id), audit_id)
        return self.look(audit_id)

    def cancel(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        control.cancel(self.records, audit_id)
        self._let_know(audit_id)
        return self.look(audit_id)

    def find(self, audit: str) -> str:
        """The id that a beginning stands for.

        Raises:
            UnknownAuditError: when no audit's id begins so, or several do and none is just that.
        """
        # Not what LIKE makes of it: SQLite's takes no note of case.
        found = [
            record.audit_id
            for record in (self.records.audits(prefix=audit, limit=_NAMED + 1) if audit else [])
            if record.audit_id.startswith(audit)
        ]
        if audit in found or (audit and self._is_on_record(audit)):
            return audit
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownAuditError(
                f"'{visible(audit[:80])}' is the beginning of several audits, {_listed(found)}: give more of the id"
            )
        there = [record.audit_id for record in self.records.audits(limit=_NAMED + 1)]
        what = f"there is no audit '{visible(audit[:80])}'" if audit else "an audit is to be named by its id"
        raise UnknownAuditError(f"{what}; {f'on record are {_listed(there)}' if there else 'none is on record'}")

    def _is_on_record(self, audit_id: str) -> bool:
        try:
            self.records.audit(audit_id)
        except StoreError:
            return False
        return True

    def look(self, audit_id: str) -> AuditStatus:
        """An audit as it is now, by its whole id. Where its ledger is gone, one that has ended is without counts."""
        audit = view(self.records, audit_id)
        try:
            return read_status(audit, self.records, self.counts)
        except StoreError:
            if not audit.record.state.ended:
                raise
            return read_status(audit, self.records, None)

    def _let_know(self, audit_id: str) -> None:
        """Have the router give the audit's share of the endpoints to others; its reconciler does it later, else."""
        with suppress(OperationalError, OSError):
            self.send(TakeOn(audit_id=audit_id))

    def _tell(self, message: Message, audit_id: str) -> None:
        """Send the router a message.

        Raises:
            StackError: when the broker cannot be reached; the audit is on record then.
        """
        try:
            self.send(message)
        except (OperationalError, OSError) as error:
            raise StackError(
                f"audit {audit_id} is on record, but the broker does not answer ({error}): start the stack with "
                "`proctor up`, or set PROCTOR_BROKER_URL, and give the same command again"
            ) from error


def _listed(audit_ids: list[str]) -> str:
    return ", ".join(audit_ids[:_NAMED]) + (", …" if len(audit_ids) > _NAMED else "")


@contextmanager
def local_desk(settings: Settings) -> Iterator[LocalDesk]:
    """Audits on the stores that the settings name, which are closed with the block.

    Raises:
        StoreError: when the record store cannot be opened.
    """
    configure(settings)
    with ExitStack() as stack:
        records = stack.enter_context(closing(Records(settings.records_url)))
        ledger = stack.enter_context(closing(Ledger(settings.ledger_url)))
        pools = stack.enter_context(closing(Pools(settings.ledger_url)))
        yield LocalDesk(settings, records, Counts(ledger, pools), cache(lambda: open_artifacts(settings)), send)
