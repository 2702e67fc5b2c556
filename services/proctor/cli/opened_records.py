"""The record store of a command that asks what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.runtime.records.store import Records
    from proctor.runtime.settings import Settings


@contextmanager
def opened_records(settings: Settings) -> Iterator[Records]:
    """The record store that the settings name, which is closed with the block.

    Raises:
        BadInputError: when the home has none.
        StoreError: when it cannot be opened, or is to be migrated first.
    """
    from proctor.runtime.private import tighten_stores
    from proctor.runtime.records.schema import version_of
    from proctor.runtime.records.store import Records

    if version_of(settings.records_url) == 0 and settings.records_url.startswith("sqlite"):
        raise BadInputError(
            f"there is no record store in {settings.home}: name the home (--home), or the store (PROCTOR_RECORDS_URL)"
        )
    tighten_stores(settings.home, settings.artifacts)
    migrate = settings.records_migrate.commands(settings.records_url)
    with closing(Records(settings.records_url, migrate=migrate)) as records:
        yield records
