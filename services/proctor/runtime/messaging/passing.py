"""Which errors say nothing of what was tried: a store or the broker was away, or another version is to try it."""

from __future__ import annotations

from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import DBAPIError, OperationalError

from proctor.domain.errors import NewerVersionError, StoreError


def of_a_store(error: BaseException) -> bool:
    """Whether it is a store's error, which may be back in a moment."""
    if isinstance(error, DBAPIError):
        return isinstance(error, OperationalError) or error.connection_invalidated
    return isinstance(error, StoreError)


def passes(error: Exception) -> bool:
    """Whether it is a store's error, or the broker's, or the message goes to a worker of another version."""
    return of_a_store(error) or isinstance(error, BrokerError | NewerVersionError)
