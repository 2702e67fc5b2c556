"""What can be done with audits from outside, on the stores of this machine. The service and the commands are thin."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Final

from kombu.exceptions import OperationalError

from proctor.domain.action import ActionOnRecord
from proctor.domain.ceilings import Ceilings
from proctor.domain.errors import BadInputError, NewerVersionError, StackError, StoreError
from proctor.domain.messages import SERVICES, Message, Priority, StartAudit, TakeOn
from proctor.domain.problems import visible
from proctor.domain.submitter import LOCAL, Submitter
from proctor.domain.suite import Suite
from proctor.formats.suites import load_suite
from proctor.gateway.attachments import gather_attached
from proctor.gateway.ceilings import Admission, submitter_of
from proctor.gateway.desk import DEFAULT_LIMIT, MAX_AUDIT_CHARACTERS, Submitted, UnknownAuditError
from proctor.gateway.reading import Counts, read_status
from proctor.gateway.status import AuditStatus
from proctor.gateway.watching import watch
from proctor.router import control
from proctor.router.audit import view, view_of
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.router.submit.endpoints import paraphraser_notes
from proctor.router.submit.gathering import AuditData, gather
from proctor.router.submit.submission import subject_of, submit, unended
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.messaging.tasks import configure, send
from proctor.runtime.private import tighten_stores
from proctor.runtime.records.audit_list import ListedAudit, Place, Wanted
from proctor.runtime.records.opening import open_records
from proctor.runtime.records.requests import AuditRequest
from proctor.runtime.records.store import AuditRecord, Records, UnreadableAudit
from proctor.runtime.redis.presence import Presence
from proctor.runtime.settings import Settings
from proctor.runtime.traces import tracing

#: Ids that a message names.
_NAMED: Final = 5
#: Rows that are read at once.
_PAGE: Final = 50
_ID: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclasses.dataclass(frozen=True)
class LocalDesk:
    """Audits on the stores that the settings name; an `AuditDesk`."""

    settings: Settings
    records: Records
    counts: Counts
    artifacts: Callable[[], ArtifactStore]
    """Opened only where something is stored."""
    send: Callable[[Message], None]
    at_terminal: bool = False
    """Whether who starts audits here sits at this machine's terminal: their suites' endpoints get the keys, which
    those of other callers' suites do not unless the operator named them. A command says so; a service never does."""
    presence: Presence | None = None
    """Where workers say that they live; without it nobody is said to be away."""
    caller: Submitter = LOCAL
    """Whose audits these are; who sees all has everyone's."""

    def of(self, caller: Submitter) -> LocalDesk:
        """The same stores for another caller."""
        return dataclasses.replace(self, caller=caller)

    @property
    def ceilings(self) -> Ceilings:
        """What the operator lets the caller use."""
        return self.settings.ceilings.of(self.caller.name)

    def submit(self, suite_file: Path, priority: Priority = Priority.NORMAL) -> Submitted:
        """See `AuditDesk`. Paths in the suite are relative to its file's folder."""
        suite = load_suite(suite_file)
        data = gather(suite, suite_file.parent, self.settings.bundle, self.settings.benchmarks, hub=self.settings.hub)
        return self.begin(data, priority)

    def submit_attached(
        self, suite: Suite, files: dict[str, bytes], priority: Priority, *, request: str | None = None
    ) -> Submitted:
        """The same for a suite that came with its files; no file of this machine is read under a name in it.

        Nor does it get keys that no operator gave it, whoever's desk this is: it came from elsewhere. `request` is as
        in `begin`.
        """
        where = self.settings.bundle, self.settings.benchmarks
        data = gather_attached(suite, files, *where, hub=self.settings.hub, corpora=self.settings.corpora)
        return self._begin(data, priority, at_terminal=False, request=request)

    def begin(self, data: AuditData, priority: Priority = Priority.NORMAL, *, request: str | None = None) -> Submitted:
        """The same for a suite with its data; as the one audit of a request on record, where one is named.

        Raises:
            RequestTakenError: when the request has another audit already.
        """
        return self._begin(data, priority, at_terminal=self.at_terminal, request=request)

    def _begin(self, data: AuditData, priority: Priority, *, at_terminal: bool, request: str | None) -> Submitted:
        admission = Admission(self.settings, self.records)
        admission.hold_items(self.caller.name, data)
        place = partial(admission.place, self.caller.name)
        if admission.counts_audits(self.caller.name):
            # Before anything is stored: what is refused takes no disk.
            with place(unended(self.records, subject_of(data, self.settings, self.caller))):
                pass
        stores = self.settings, self.records, self.artifacts()
        with tracing.submitting(partial(self._request, request)) as on_record:
            record, resumed = submit(
                data,
                *stores,
                priority=priority,
                at_terminal=at_terminal,
                submitter=self.caller,
                admit=place,
                request=request,
            )
            on_record(record.audit_id, record.created_at, resumed)
            self._tell(StartAudit(audit_id=record.audit_id), record.audit_id)
        notes = (*data.notes, *paraphraser_notes(data.suite, self.settings))
        return Submitted(self.look(record.audit_id), record.state if resumed else None, notes)

    def _request(self, key: str | None) -> AuditRequest | None:
        return None if key is None else self.records.requests.find([key]).get(key)

    def away(self) -> list[str]:
        """The stores that do not answer, by their names."""
        return [
            name
            for name, ping in {"records": self.records.ping, "ledger": self.counts.ledger.ping}.items()
            if _silent(ping)
        ]

    def status(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return self.look(self.find(audit))

    def audits(self, limit: int = DEFAULT_LIMIT) -> list[AuditStatus | UnreadableAudit]:
        """See `AuditDesk`. Where the ledger cannot be asked, they are without counts."""
        counts: Counts | None = self.counts
        found: list[AuditStatus | UnreadableAudit] = []
        for record in self._newest(limit):
            if isinstance(record, UnreadableAudit):
                found.append(record)
                continue
            try:
                audit = view_of(record)
                try:
                    found.append(read_status(audit, self.records, counts))
                except StoreError:
                    # Not asked again for each of the others: it takes its time not to answer.
                    counts = None
                    found.append(read_status(audit, self.records, None))
            except NewerVersionError as error:
                found.append(UnreadableAudit(record.audit_id, record.created_at, str(error)))
        return found

    def listed(self, wanted: Wanted, *, limit: int, before: Place | None = None) -> list[ListedAudit]:
        """Some of the caller's audits as a list shows them, without what the ledger counts, the newest first."""
        submitter = None if self.caller.sees_all else self.caller.name
        return self.records.list.page(wanted._replace(submitter=submitter), limit=limit, before=before)

    def watch(self, audit: str) -> Iterator[AuditStatus]:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        for (status,) in watch(lambda: [self.look(audit_id)]):
            yield status

    def pause(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        control.pause(self.records, audit_id, self.caller)
        self._let_know(audit_id)
        return self.look(audit_id)

    def resume(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        record = self.records.audit(audit_id)
        with Admission(self.settings, self.records).place(submitter_of(record), record):
            control.resume(self.records, audit_id, self.caller)
        self._tell(TakeOn(audit_id=audit_id), audit_id)
        return self.look(audit_id)

    def cancel(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        audit_id = self.find(audit)
        control.cancel(self.records, audit_id, self.caller)
        self._let_know(audit_id)
        return self.look(audit_id)

    def actions(self, audit: str) -> list[ActionOnRecord]:
        """What callers did to an audit, in its order."""
        return self.records.actions.of(self.find(audit))

    def find(self, audit: str) -> str:
        """The id that a beginning stands for.

        Raises:
            BadInputError: when it is longer than any id.
            UnknownAuditError: when no audit of the caller's id begins so, or several do and none is just that.
        """
        if len(audit) > MAX_AUDIT_CHARACTERS:
            raise BadInputError(f"audit has {len(audit):,} characters: an id has at most {MAX_AUDIT_CHARACTERS}")
        # No store is asked for what no id can be: PostgreSQL takes no text with a NUL.
        asked = _ID.fullmatch(audit) is not None
        # Not what LIKE makes of it: SQLite's takes no note of case.
        found = [one for one in (self._ids(audit) if asked else []) if one.startswith(audit)]
        if audit in found or (asked and self._is_on_record(audit)):
            return audit
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownAuditError(
                f"'{visible(audit[:80])}' is the beginning of several audits, {_listed(found)}: give more of the id"
            )
        there = self._ids()
        what = f"there is no audit '{visible(audit[:80])}'" if audit else "an audit is to be named by its id"
        raise UnknownAuditError(f"{what}; {f'on record are {_listed(there)}' if there else 'none is on record'}")

    def _newest(self, limit: int, prefix: str = "") -> Iterator[AuditRecord | UnreadableAudit]:
        """The newest of the caller's audits. A row may hold a suite of many kilobytes, so few are in memory at once."""
        submitter = None if self.caller.sees_all else self.caller.name
        seen: set[str] = set()
        for skip in range(0, limit, _PAGE):
            page = self.records.audits(prefix=prefix, limit=min(_PAGE, limit - skip), skip=skip, submitter=submitter)
            # A page begins with what the one before it ended with, when another audit is put on record meanwhile.
            yield from (record for record in page if record.audit_id not in seen)
            seen.update(record.audit_id for record in page)
            if len(page) < _PAGE:
                return

    def _ids(self, prefix: str = "") -> list[str]:
        """Some of the caller's audits by their ids."""
        return [record.audit_id for record in self._newest(_NAMED + 1, prefix)]

    def _is_on_record(self, audit_id: str) -> bool:
        try:
            record = self.records.audit(audit_id)
        except NewerVersionError:
            # Whose it is stands in what cannot be read.
            return self.caller.sees_all
        except StoreError:
            return False
        return self.caller.sees_all or submitter_of(record) == self.caller.name

    def look(self, audit_id: str) -> AuditStatus:
        """An audit as it is now, by its whole id. Where its ledger is gone, one that has ended is without counts."""
        audit = view(self.records, audit_id)
        try:
            status = read_status(audit, self.records, self.counts)
            return status if status.ended else status.model_copy(update={"services_away": self._away()})
        except StoreError:
            if not audit.record.state.ended:
                raise
            return read_status(audit, self.records, None)

    def _away(self) -> tuple[str, ...]:
        """Services that no living worker is of."""
        if self.presence is None:
            return ()
        needed = [name for name in SERVICES if name != "registry" or self.settings.registry_uri]
        return tuple(name for name in needed if not self.presence.slots(name))

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


def _silent(ping: Callable[[], None]) -> bool:
    try:
        ping()
    except StoreError:
        return True
    return False


def _listed(audit_ids: list[str]) -> str:
    return ", ".join(audit_ids[:_NAMED]) + (", …" if len(audit_ids) > _NAMED else "")


@contextmanager
def local_desk(settings: Settings, *, at_terminal: bool = False, serves: bool = False) -> Iterator[LocalDesk]:
    """Audits on the stores that the settings name, which are closed with the block.

    Args:
        settings: where the stores are.
        at_terminal: see `LocalDesk`.
        serves: whether this is a server of the deployment's own version, and no command that a person gives.

    Raises:
        StoreError: when the record store cannot be opened.
    """
    configure(settings)
    tighten_stores(settings.home, settings.artifacts)
    migrate = settings.records_migrate.commands(settings.records_url)
    with ExitStack() as stack:
        tracing.begin("gateway" if serves else "cli")
        stack.callback(tracing.end)
        opened = open_records(settings) if serves else Records(settings.records_url, migrate=migrate)
        records = stack.enter_context(closing(opened))
        if serves:
            records.list.fill_in()
        ledger = stack.enter_context(closing(Ledger(settings.ledger_url)))
        pools = stack.enter_context(closing(Pools(settings.ledger_url)))
        silence = timedelta(seconds=settings.timing.presence_s)
        presence = stack.enter_context(closing(Presence(settings.ledger_url, silence=silence)))
        artifacts = cache(lambda: open_artifacts(settings))
        yield LocalDesk(settings, records, Counts(ledger, pools), artifacts, send, at_terminal, presence)
