"""Leading: of all processes of a component, one holds the Lease, and does what one does.

A thread tries every two seconds. Its word is good for ten seconds from the moment at which the last renewal that the
server took was asked for, and no longer: whoever comes after waits for fifteen from when he sees it, so there are five
in which nobody begins anything. A process that stands still between asking and acting may still act late. That does no
harm, because nothing that a leader does depends on being alone: what the reconciler finds is taken once by the ledger
and the audit's row, what expires is one transaction each, what is forgotten stays so, and a request for an audit has
one row. The Lease saves the work of doing it several times over.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from proctor.domain.errors import ProctorError
from proctor.runtime.kubernetes.client import CONFLICT, NOT_FOUND, TIMEOUT_S, KubernetesError, api_client, asking
from proctor.runtime.kubernetes.lease import LEASE_S, RENEW_DEADLINE_S, RETRY_S, Act, Observed, Record
from proctor.runtime.kubernetes.lease_name import LeaseName

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, V1Lease

logger = logging.getLogger(__name__)

#: The pod's name, by the downward API.
POD_NAME: Final = "POD_NAME"
#: A little more each time, so that candidates that began together do not go on asking together.
_JITTER: Final = 0.2
#: Of a released Lease: nobody need wait for it.
_RELEASED_S: Final = 1

Leads = Callable[[], bool]
"""Whether this process is to do now what only one does."""


def everybody_leads() -> bool:
    """Where there is no Lease."""
    return True


def own_identity() -> str:
    """This process', and nobody else's: not that of the one before it in the same pod, which may still be at work."""
    return f"{os.environ.get(POD_NAME) or socket.gethostname()}_{secrets.token_hex(4)}"


@contextmanager
def leading(lease: LeaseName | None) -> Iterator[Leads]:
    """Stand for a Lease while the block lasts, and release it afterwards; gives whether this process leads.

    Args:
        lease: which; None has everybody lead.

    Raises:
        BadInputError: the API server cannot be asked at all.
    """
    if lease is None:
        yield everybody_leads
        return
    with api_client() as api:
        candidate = Candidate(api, lease, own_identity())
        stop = threading.Event()
        thread = threading.Thread(target=candidate.stand, args=(stop,), name="leader", daemon=True)
        thread.start()
        try:
            yield candidate.leads
        finally:
            stop.set()
            thread.join()


class Candidate:
    """One process that stands for a Lease.

    Args:
        api: the server.
        name: the Lease's.
        identity: who this is.
        clock: a steady one.
    """

    def __init__(
        self, api: ApiClient, name: LeaseName, identity: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from kubernetes.client import CoordinationV1Api

        self._leases = CoordinationV1Api(api)
        self._name = name
        self.identity = identity
        self._clock = clock
        self._observed = Observed(identity)
        self._until_s = float("-inf")
        self._told: str | None = None

    def leads(self) -> bool:
        """Whether it holds the Lease, as far as anybody can know."""
        return self._clock() < self._until_s

    def stand(self, stop: threading.Event) -> None:
        """Try again and again, until it is told to stop; then release what it holds."""
        while not stop.is_set():
            self.once()
            stop.wait(RETRY_S * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 - jitter, not a secret
        self.release()

    def once(self) -> None:
        """One try: read, decide, write."""
        led = self.leads()
        try:
            self._try()
        except KubernetesError as error:
            # The same refusal every two seconds is one line.
            if str(error) != self._told:
                logger.warning("the lease %s: %s", self._name, error)
            self._told = str(error)
        else:
            self._told = None
        if self.leads() != led:
            holder = self._observed.record.holder if self._observed.record else ""
            logger.info("%s %s (held by %s)", self._name, "is led by this process" if not led else "is lost", holder)

    def release(self) -> None:
        """Let another have it at once."""
        self._until_s = float("-inf")
        try:
            found = self._read()
            if found is None or _record(found).holder != self.identity:
                return
            found.spec.holder_identity, found.spec.lease_duration_seconds = None, _RELEASED_S
            found.spec.renew_time = datetime.now(UTC)
            self._write(found)
        except ProctorError as error:
            logger.warning("the lease %s is not released, and runs out: %s", self._name, error)

    def _try(self) -> None:
        asked_s = self._clock()
        found = self._read()
        act = self._observed.see(None if found is None else _record(found), self._clock())
        if act is not Act.RENEW:
            # Whoever wrote over it holds it, and is waited for like anybody.
            self._until_s = float("-inf")
        if act is Act.WAIT:
            return
        try:
            written = self._create() if found is None else self._hold(found, anew=act is Act.ACQUIRE)
        except KubernetesError as error:
            if error.status == CONFLICT:
                # Somebody else was first; who, the next look will say.
                self._until_s = float("-inf")
                return
            raise
        self._observed.see(_record(written), self._clock())
        self._until_s = asked_s + RENEW_DEADLINE_S

    def _read(self) -> V1Lease | None:
        try:
            with asking("it cannot be read"):
                return self._leases.read_namespaced_lease(
                    self._name.name, self._name.namespace, _request_timeout=TIMEOUT_S
                )
        except KubernetesError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _create(self) -> V1Lease:
        from kubernetes.client import V1Lease, V1LeaseSpec, V1ObjectMeta

        now = datetime.now(UTC)
        spec = V1LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=int(LEASE_S),
            acquire_time=now,
            renew_time=now,
            lease_transitions=0,
        )
        lease = V1Lease(metadata=V1ObjectMeta(name=self._name.name), spec=spec)
        with asking("it cannot be created"):
            return self._leases.create_namespaced_lease(self._name.namespace, lease, _request_timeout=TIMEOUT_S)

    def _hold(self, found: V1Lease, *, anew: bool) -> V1Lease:
        from kubernetes.client import V1LeaseSpec

        # One that a chart has made says nothing yet.
        spec = found.spec = found.spec or V1LeaseSpec()
        spec.renew_time = datetime.now(UTC)
        if anew:
            spec.acquire_time = spec.renew_time
            spec.lease_transitions = (spec.lease_transitions or 0) + 1
        spec.holder_identity, spec.lease_duration_seconds = self.identity, int(LEASE_S)
        return self._write(found)

    def _write(self, lease: V1Lease) -> V1Lease:
        """Replace what was read. With its resourceVersion in it: the server refuses where another has written since."""
        with asking("it cannot be written"):
            return self._leases.replace_namespaced_lease(
                self._name.name, self._name.namespace, lease, _request_timeout=TIMEOUT_S
            )


def _record(lease: Any) -> Record:
    spec = lease.spec
    if spec is None:
        return Record("", 0.0, "")
    mark = f"{spec.acquire_time} {spec.renew_time} {spec.lease_transitions}"
    return Record(spec.holder_identity or "", float(spec.lease_duration_seconds or LEASE_S), mark)
