"""Whether a submission may begin: the operator's ceilings on audits at a time and on items."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from proctor.domain.ceilings import CEILINGS, LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.submitter import LOCAL_NAME
from proctor.router.submit.gathering import AuditData
from proctor.runtime.records.exclusive import exclusive
from proctor.runtime.records.store import AuditRecord, Records
from proctor.runtime.settings import Settings

#: Audits that a message names.
_NAMED: Final = 3


def submitter_of(record: AuditRecord) -> str:
    """Who started an audit last."""
    return str(record.inputs.get("submitter", LOCAL_NAME))


@dataclass(frozen=True)
class Admission:
    """The ceilings of the settings, over the audits on record."""

    settings: Settings
    records: Records

    def counts_audits(self, submitter: str) -> bool:
        """Whether a submitter may have so many audits at a time and no more."""
        return self.settings.ceilings.of(submitter).max_audits is not None

    def hold_items(self, submitter: str, data: AuditData) -> None:
        """Refuse a suite that asks of more items than its submitter may.

        Raises:
            BadInputError: when it does.
        """
        most, items = self.settings.ceilings.of(submitter).max_items, len(data.items.items)
        if most is not None and items > most:
            raise BadInputError(
                f"the suite asks of {items:,} items, and submitter '{submitter}' may ask of {most:,} ({CEILINGS}: "
                "max_items): lower dataset_config.sample_size, or have the operator raise the ceiling"
            )

    @contextmanager
    def place(self, submitter: str, found: AuditRecord | None) -> Iterator[None]:
        """A place among a submitter's audits that have not ended, for the block in which it is put on record.

        The audits are counted and the block is gone through under one lock of the record store, so that of two
        submissions at once, through whatever gateways, one alone gets the last place.

        Args:
            submitter: whose audit it is to be.
            found: the audit that goes on; None for a new one.

        Raises:
            LimitError: when the ceiling is reached.
            StoreError: when the record store has no such lock.
        """
        most = self.settings.ceilings.of(submitter).max_audits
        has_one = found is not None and not found.state.ended and submitter_of(found) == submitter
        if most is None or has_one:
            yield
            return
        with exclusive(self.settings.records_url):
            there = [record.audit_id for record in self.records.running_audits() if submitter_of(record) == submitter]
            if len(there) >= most:
                named = ", ".join(there[:_NAMED]) + (", …" if len(there) > _NAMED else "")
                raise LimitError(
                    f"submitter '{submitter}' may have {most:,} audits at a time ({CEILINGS}: max_audits), and "
                    f"{len(there):,} have not ended{f' ({named})' if there else ''}: wait for one to end, cancel one, "
                    "or have the operator raise the ceiling"
                )
            yield
