"""Taking a registry's deliveries in: verified, read, on record, and only then answered.

A delivery is checked before anything of it is read, and put on record before its sender is told that it was taken:
whoever is told otherwise, or nothing, sends it again (MLflow for 429 and 5xx alone). Nothing else is done here; who
starts audits finds the requests on record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from pydantic import SecretStr

from proctor.domain.errors import BadInputError
from proctor.domain.registered_version import RegistryKind
from proctor.domain.triggers import Triggers
from proctor.registry.requesting import ask_for, requests_of
from proctor.registry.webhooks import huggingface, mlflow
from proctor.registry.webhooks.events import AliasSet, Delivery, Event, Ignored
from proctor.runtime.records.requests import AuditRequests, NewRequest
from proctor.runtime.redis.replays import Replays

logger = logging.getLogger(__name__)

#: Of a body, which is read no further.
MAX_BODY_BYTES: Final = 256 << 10
#: Of a registry: the one that is used, and the one before or after it while they change.
MAX_SECRETS: Final = 2

Headers: TypeAlias = Mapping[str, Sequence[str]]


class ReusedError(BadInputError):
    """A delivery's id that was taken in with another content."""


class NoSecretError(BadInputError):
    """Webhooks of a registry that nobody set up here."""


class Answer(NamedTuple):
    """What a sender is told whose delivery was taken in."""

    status: str
    """`accepted`, `duplicate` or `ignored`."""
    why: str = ""
    requests: tuple[str, ...] = ()
    """Keys of the audits that it asked for, whoever asked first."""


class Receiver:
    """Where webhooks come to.

    Args:
        triggers: what is audited.
        secrets: those that are active, by registry.
        replays: deliveries that were taken in of late.
        requests: where audits are asked for.
        wake: called when there is something new to start.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        triggers: Triggers,
        secrets: Mapping[RegistryKind, Sequence[SecretStr]],
        replays: Replays,
        requests: AuditRequests,
        *,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._triggers = triggers
        self._secrets = secrets
        self._replays = replays
        self._requests = requests
        self._wake = wake
        self._clock = clock

    def mlflow(self, headers: Headers, body: bytes) -> Answer:
        """A delivery of MLflow's.

        Raises:
            NoSecretError: when no secret is set for it here.
            ForgedError: when it is not from who knows one, or stale.
            MalformedError: when it says nothing that can be read.
            ReusedError: when its id was taken in with another content.
            StoreError: when it cannot be put on record; it is to be sent again.
        """
        delivery = mlflow.verified(headers, body, self._active(RegistryKind.MLFLOW), self._clock())
        return self._taken(RegistryKind.MLFLOW, delivery, lambda: mlflow.event_of(body))

    def huggingface(self, headers: Headers, body: bytes) -> Answer:
        """A delivery of the Hub's; raises as `mlflow` does."""
        huggingface.verify(headers, self._active(RegistryKind.HUGGINGFACE))
        return self._taken(RegistryKind.HUGGINGFACE, huggingface.delivery_of(body), lambda: huggingface.event_of(body))

    def _active(self, registry: RegistryKind) -> Sequence[SecretStr]:
        secrets = self._secrets.get(registry, ())
        if not secrets:
            raise NoSecretError(
                f"webhooks of {registry} are not set up here: set PROCTOR_GATEWAY_{registry.upper()}_SECRETS"
            )
        return secrets

    def _taken(self, registry: RegistryKind, delivery: Delivery, read: Callable[[], Event]) -> Answer:
        content = self._replays.content(registry.value, delivery.id)
        if content is not None:
            if content != delivery.content:
                raise ReusedError("this delivery id was taken in with another body: give each delivery its own")
            return Answer("duplicate")
        event = read()
        wanted = self._wanted(event)
        if wanted and ask_for(self._requests, wanted):
            self._wake()
        self._replays.remember(registry.value, delivery.id, delivery.content)
        if not wanted:
            return Answer("ignored", event.why if isinstance(event, Ignored) else "no rule is of it")
        logger.info("%s asked for %d audits by delivery %s", registry, len(wanted), delivery.id)
        return Answer("accepted", requests=tuple(one.key for one in wanted))

    def _wanted(self, event: Event) -> list[NewRequest]:
        if isinstance(event, Ignored):
            return []
        if isinstance(event, AliasSet):
            asked = event.alias == self._triggers.alias
            return requests_of(self._triggers, event.version, "alias") if asked else []
        return requests_of(self._triggers, event.version, "webhook")
