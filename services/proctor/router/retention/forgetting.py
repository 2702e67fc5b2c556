"""Forgetting prompts and completions that are old, and nothing that a report or an open audit needs.

Of a decided audit stays for ever what its report is verified by: the report, the manifest with the protocol card, the
settings, items and variants that it names, and who answered which shard. What was asked and said (shards, completions,
their grades, prompts of rewording) goes when the audit was decided longer ago than its suite's
`result_retention_days`, or than the operator's period where there is one and it is more. An audit that is not at its
end keeps everything, a failed one too: it can be started again. Rows of the record store stay.

Objects are named by their content, so two audits may share one; it goes when nothing on record keeps it. First all that
is kept is marked, from the record store and the ledger; then what is not marked and was last put before the period is
deleted. What is put meanwhile is young, or is refreshed by `put` (`proctor.runtime.artifacts.objects`), so marks need
not be of this moment. A run that is broken off has deleted less, and the next one goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.suite import GovernanceSection
from proctor.router.ledger.store import KEY_TTL, Ledger
from proctor.router.retention.kept import KeptDigests
from proctor.runtime.artifacts.names import digest_of
from proctor.runtime.artifacts.objects import ForgettingStore, StoredObject
from proctor.runtime.records.audit_state import AuditOnRecord, AuditState
from proctor.runtime.records.store import Records

Result = TypeVar("Result")

#: Shorter periods are refused. An audit that failed can go on with what its ledger names for a week (`KEY_TTL`), and a
#: message may wait for its worker: what it names must be there by then.
MIN_RETENTION_DAYS: Final = KEY_TTL.days + 1
MAX_RETENTION_DAYS: Final = 36_500
#: What a writer that died left behind is of no use to anybody; none writes for so long.
_LEFT_BEHIND_FOR: Final = timedelta(days=1)
#: Members of a manifest, or of what a model was asked before, that name what was asked and said.
_EVIDENCE: Final = ("answered", "dead")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DEFAULT_DAYS: Final = GovernanceSection().result_retention_days
#: Audits that are looked at between two steps where nothing but their rows is read.
_ROWS: Final = 100
_FINAL: Final = frozenset(state.value for state in AuditState if state.final)


@dataclass(frozen=True)
class Period:
    """For how long what was asked and said is kept."""

    days: int | None
    """The operator's period; None has each suite's own count."""
    override_suites: bool = False
    """Whether a suite's own period counts for nothing where it is longer."""

    def __post_init__(self) -> None:
        if self.days is not None and not MIN_RETENTION_DAYS <= self.days <= MAX_RETENTION_DAYS:
            raise BadInputError(
                f"a period of {self.days} days is out of range: it must be from {MIN_RETENTION_DAYS} days, for which "
                f"an interrupted audit can go on, to {MAX_RETENTION_DAYS}"
            )

    def of(self, audit: AuditOnRecord) -> timedelta:
        """The period of one decided audit.

        Raises:
            ValueError: its suite cannot be read.
        """
        if self.days is not None and self.override_suites:
            return timedelta(days=self.days)
        wanted = json.loads(audit.suite).get("governance", {}).get("result_retention_days", _DEFAULT_DAYS)
        return timedelta(days=max(self.days or MIN_RETENTION_DAYS, int(wanted)))


@dataclass
class Forgotten:
    """What a run has removed so far, or would remove."""

    objects: int = 0
    n_bytes: int = 0
    kept: int = 0
    """Objects that stay."""
    left_behind: int = 0
    """Of the removed ones, those that a writer which died had not finished."""
    past: list[str] = field(default_factory=list)
    """Audits whose prompts and completions are past their period, whether they were removed now or before."""
    held_by_suites: int = 0
    """Audits whose suite keeps theirs for longer than was asked for."""
    open: int = 0
    """Audits that are not at their end, and keep everything."""


def forget(
    records: Records,
    ledger: Ledger,
    store: ForgettingStore,
    period: Period,
    *,
    now: datetime | None = None,
    dry_run: bool = False,
) -> Iterator[Forgotten]:
    """Remove what is past its period, step by step; each step gives what came of all so far, always the same object.

    Args:
        records: what is on record.
        ledger: of the same audits; an open audit's shards are known there alone.
        store: what is to forget.
        period: how old is old.
        now: the time; by default the ledger's server's, where it is behind this machine's clock.
        dry_run: remove nothing.

    Raises:
        StoreError: one of the stores cannot be reached, or an audit cannot be read: nothing is removed from then on.
    """
    now = now or min(datetime.now(UTC), ledger.time())
    seen, kept = Forgotten(), KeptDigests()
    oldest = timedelta(days=period.days or MAX_RETENTION_DAYS)
    if period.days is None:
        # Rows alone, before any object is looked at: for its first year an installation has nothing to remove.
        due = False
        for number, audit in enumerate(records.each_audit()):
            due |= _read(audit, lambda one: _is_past(one, period, now, Forgotten()))
            oldest = min(oldest, _read(audit, period.of))
            if number % _ROWS == 0:
                yield seen
        if not due:
            yield seen
            return
    for audit in records.each_audit():
        _mark(audit, ledger, store, period, now, kept, seen)
        yield seen
    # What no audit on record names is of one whose period is no shorter than the shortest.
    put_before = now - oldest
    for batch in store.objects():
        old = [one for one in batch if _may_go(one, kept, put_before, now)]
        # Those left behind are younger than the rest may be: their own time is what counts.
        whole, parts = [one for one in old if one.whole], [one for one in old if not one.whole]
        gone = old if dry_run else [*store.take_out(whole, put_before), *store.take_out(parts, now - _LEFT_BEHIND_FOR)]
        seen.objects += len(gone)
        seen.n_bytes += sum(one.n_bytes for one in gone)
        seen.left_behind += sum(not one.whole for one in gone)
        seen.kept += len(batch) - len(gone)
        yield seen
    yield seen


def _may_go(one: StoredObject, kept: KeptDigests, put_before: datetime, now: datetime) -> bool:
    if not one.whole:
        return one.last_put < now - _LEFT_BEHIND_FOR
    return one.last_put < put_before and digest_of(one.name) not in kept


def _mark(
    audit: AuditOnRecord,
    ledger: Ledger,
    store: ForgettingStore,
    period: Period,
    now: datetime,
    kept: KeptDigests,
    seen: Forgotten,
) -> None:
    inputs = _read(audit, lambda one: json.loads(one.inputs))
    past = _read(audit, lambda one: _is_past(one, period, now, seen))
    for digest in _DIGEST.findall(audit.event or ""):
        kept.add(digest)
    for digest in sorted(set(_digests(inputs))):
        kept.add(digest)
        document = _document(store, digest)
        for name, value in document.items():
            if not (past and name in _EVIDENCE):
                for named in _digests(value):
                    kept.add(named)
    if audit.state not in _FINAL:
        # After its row: what has left the ledger for the row meanwhile is still in the ledger for a day.
        for digest in _in_ledger(ledger, audit.audit_id):
            kept.add(digest)


def _read(audit: AuditOnRecord, reader: Callable[[AuditOnRecord], Result]) -> Result:
    try:
        return reader(audit)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"audit {audit.audit_id} cannot be read ({error}), so what it needs is not known, and nothing is removed"
        ) from error


def _is_past(audit: AuditOnRecord, period: Period, now: datetime, seen: Forgotten) -> bool:
    """Whether what was asked and said of an audit may go, as far as this audit is concerned."""
    if audit.state not in _FINAL:
        seen.open += 1
        return False
    if audit.decided_at is None:
        if audit.state != AuditState.CANCELLED:
            return False
        # By the operator's period the age of each object decides.
        return period.days is not None or now - datetime.fromisoformat(audit.created_at) >= period.of(audit)
    age = now - datetime.fromisoformat(audit.decided_at)
    if age >= period.of(audit):
        seen.past.append(audit.audit_id)
        return True
    seen.held_by_suites += period.days is not None and age >= timedelta(days=period.days)
    return False


def _document(store: ForgettingStore, digest: str) -> dict[str, Any]:
    """What an object names, where it is a JSON object; nothing where it is not there or is something else."""
    try:
        data = store.get(digest)
    except StoreError:
        # A digest of the weights, say, is no object. One that is there and cannot be read is another matter.
        if store.holds(digest):
            raise
        return {}
    with suppress(ValueError):
        document = json.loads(data)
        if isinstance(document, dict):
            return document
    return {}


def _digests(value: Any) -> Iterator[str]:
    """Every string in plain data that is a whole digest, however deep; no text that merely holds one."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if FULL_DIGEST.fullmatch(one):
                yield one
        elif isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one


def _in_ledger(ledger: Ledger, audit_id: str) -> Iterator[str]:
    for stage in sorted(ledger.stages(audit_id)):
        yield from (planned.digest for planned in ledger.entries(audit_id, stage))
        yield from ledger.done(audit_id, stage).values()
        for shard, pair in ledger.graded(audit_id, stage).items():
            yield from (shard, *pair)
