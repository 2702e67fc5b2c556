"""Kubernetes Events on the workloads that name a model, when a decision on it was written.

They are said in passing: from a thread of their own, a bounded number, and what goes wrong is one line of the log. The
record has the decision, the registry the outcome; a cluster forgets its Events after an hour.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from queue import Full, Queue
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor.domain.admission.reference import ModelReference
from proctor.domain.admission.verdict import Ground, Verdict
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import ProctorError
from proctor.domain.registered_version import registered_name
from proctor.registry.kubernetes.workloads import Workload, Workloads
from proctor.runtime.kubernetes.client import CONFLICT, FORBIDDEN, TIMEOUT_S, KubernetesError, api_client, asking
from proctor.runtime.kubernetes.leader import POD_NAME
from proctor.runtime.kubernetes.where import Where

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, EventsV1Event

logger = logging.getLogger(__name__)

CONTROLLER: Final = "proctor.dev/registry"
_REASONS: Final = {Ground.APPROVED: "Approved", Ground.BLOCKED: "Blocked"}
#: What waits for a person, for a suite, or for somebody to mend the record.
_OTHERWISE: Final = "Review"
#: The API's own bounds.
_NOTE_CHARACTERS: Final = 1024
_INSTANCE_CHARACTERS: Final = 128
#: Workloads that are told of one decision.
MAX_EVENTS: Final = 200
#: Decisions that wait to be told; more are not told.
_MAX_WAITING: Final = 100


class Decided(NamedTuple):
    """A decision that was written."""

    event: DecisionEvent
    version: str
    """As the registry has it."""

    def is_of(self, reference: ModelReference) -> bool:
        """Whether a workload that names this version names the decided one."""
        same_model = registered_name(reference.name) == registered_name(self.event.model_id)
        return same_model and reference.version in (self.version, self.event.model_digest)


class Telling:
    """Tells workloads of decisions, one after another, in a thread that begins with the first.

    Args:
        where: in which namespaces.
        verdict: what stands for a version now.
    """

    def __init__(self, where: Where, verdict: Callable[[ModelReference], Verdict]) -> None:
        self._where = where
        self._verdict = verdict
        self._waiting = Queue[Decided](_MAX_WAITING)
        self._begun = threading.Lock()

    def tell(self, decided: Decided) -> None:
        """Have the workloads told soon; returns at once."""
        try:
            self._waiting.put_nowait(decided)
        except Full:
            logger.warning("audit %s: workloads are not told, too many wait", decided.event.audit_id)
            return
        if self._begun.acquire(blocking=False):
            threading.Thread(target=self._tell_all, name="kubernetes-events", daemon=True).start()

    def _tell_all(self) -> None:
        while True:
            decided = self._waiting.get()
            try:
                with api_client() as api:
                    told = tell_workloads(api, self._where, decided, self._verdict)
                logger.info("audit %s: %d workloads are told", decided.event.audit_id, told)
            except ProctorError as error:
                logger.warning("audit %s: workloads are not told: %s", decided.event.audit_id, error)
            except Exception:
                # Whatever it is, the registry's work goes on.
                logger.exception("audit %s: workloads are not told", decided.event.audit_id)


def tell_workloads(api: ApiClient, where: Where, decided: Decided, verdict: Callable[[ModelReference], Verdict]) -> int:
    """Write an Event on each workload that names the decided version; returns how many are new.

    Raises:
        KubernetesError: the server does not answer.
        ProctorError: it cannot be said what stands.
    """
    from kubernetes.client import EventsV1Api

    events, verdicts, told = EventsV1Api(api), dict[ModelReference, Verdict](), 0
    for workload in islice(Workloads(api, where).that_name(decided.is_of), MAX_EVENTS):
        for reference in workload.references:
            if reference not in verdicts:
                verdicts[reference] = verdict(reference)
            try:
                with asking(f"no Event on {workload.kind} {workload.namespace}/{workload.name}"):
                    events.create_namespaced_event(
                        workload.namespace, _event(workload, verdicts[reference]), _request_timeout=TIMEOUT_S
                    )
                told += 1
            except KubernetesError as error:
                if error.status == FORBIDDEN:
                    logger.warning("%s", error)
                elif error.status != CONFLICT:
                    raise
    return told


def _event(workload: Workload, verdict: Verdict) -> EventsV1Event:
    from kubernetes.client import EventsV1Event, V1ObjectMeta, V1ObjectReference

    # The name says what is said of whom: told twice, by whichever worker, it is there already.
    said = f"{workload.uid} {verdict.reference} {verdict.ground} {verdict.audit_id} {verdict.sequence}"
    name = f"proctor-{hashlib.sha256(said.encode()).hexdigest()[:20]}"
    instance = os.environ.get(POD_NAME) or socket.gethostname()
    return EventsV1Event(
        metadata=V1ObjectMeta(name=name, namespace=workload.namespace),
        event_time=datetime.now(UTC),
        action="Decide",
        reason=_REASONS.get(verdict.ground, _OTHERWISE),
        type="Normal" if verdict.admits else "Warning",
        note=verdict.sentence[:_NOTE_CHARACTERS],
        regarding=V1ObjectReference(
            api_version=workload.api_version,
            kind=workload.kind,
            namespace=workload.namespace,
            name=workload.name,
            uid=workload.uid,
        ),
        reporting_controller=CONTROLLER,
        reporting_instance=instance[:_INSTANCE_CHARACTERS],
    )
