"""Which errors say nothing of what was tried: a store or the broker was away, or another version is to try it."""

from __future__ import annotations

import sys

from kombu.exceptions import OperationalError as BrokerError

from proctor.domain.errors import NewerVersionError, StoreError, StoreNotReadyError


def of_a_store(error: BaseException) -> bool:
    """Whether it is a store's error, which may be back in a moment."""
    if isinstance(error, StoreError):
        return True
    if "sqlalchemy" not in sys.modules:
        # A process without records raises none of its errors, and should not import it to know that.
        return False
    from sqlalchemy.exc import DBAPIError, OperationalError

    return isinstance(error, DBAPIError) and (isinstance(error, OperationalError) or error.connection_invalidated)


def of_an_outage(error: BaseException) -> bool:
    """Whether the broker or a store was away; not what a store lacks, which is no better in a moment."""
    if isinstance(error, BrokerError | StoreNotReadyError):
        return True
    if "sqlalchemy" not in sys.modules:
        return False
    from proctor.runtime.records.engine import is_passing

    return is_passing(error)


def passes(error: Exception) -> bool:
    """Whether it is a store's error, or the broker's, or the message goes to a worker of another version."""
    return of_a_store(error) or isinstance(error, BrokerError | NewerVersionError)
