"""Keeping the list of what stands approved in a ConfigMap, by which a cluster without a webhook admits workloads.

It is computed from the record alone, so what somebody edits by hand is put right at the next look. Several workers may
keep it: each write says which version of the ConfigMap it is a change of.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from proctor.domain.admission.approvals import KEPT_UNTIL, approval_list, kept_until
from proctor.domain.admission.reference import MAX_REFERENCE_CHARACTERS, ModelReference, references_of
from proctor.domain.admission.verdict import Verdict
from proctor.domain.errors import BadInputError, ProctorError
from proctor.runtime.kubernetes.objects import ChangedMeanwhileError, KubernetesObjects, object_name, version_of
from proctor.runtime.records.deployable import Moment
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.runtime.verdicts import Verdicts

logger = logging.getLogger(__name__)

#: Between two looks: how long a change of what stands takes to reach the list, at most, while its keeper runs.
LOOK_S: Final = 5.0
#: The list is computed anew so often, whether or not anything was seen to change.
_ANEW_S: Final = 300.0
#: Versions that are on it, the newest audits' first: a ConfigMap has a megabyte.
MAX_VERSIONS: Final = 1_000


class ApprovalsKeeper:
    """Who keeps the list.

    Args:
        objects: the API server.
        path: of the ConfigMap, which is there already.
        records: what stands.
        verdicts: who is asked about versions.
        good_for: for how long a list is good that nobody keeps any more.
        clock: the time.
    """

    def __init__(
        self,
        objects: KubernetesObjects,
        path: str,
        records: Records,
        verdicts: Verdicts,
        *,
        good_for: timedelta,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._path = path
        self._records = records
        self._verdicts = verdicts
        self._good_for = good_for
        self._clock = clock
        self._list: Mapping[str, str] = {}
        self._seen: Moment | None = None
        self._ends: datetime | None = None
        self._computed_s = float("-inf")

    def keep(self) -> bool:
        """Have the ConfigMap say what stands now; whether it was written.

        Raises:
            KubernetesError: the API server does not answer, or does not let it be done.
            StoreError: the record store does not answer.
        """
        self._look()
        there = self._objects.get(self._path)
        data = there.get("data") or {}
        now = self._clock()
        until = data.get(KEPT_UNTIL, "")
        if not self._is_good(until, now):
            until = kept_until(now + self._good_for)
        wanted = {**self._list, KEPT_UNTIL: until}
        if data == wanted:
            return False
        change: dict[str, Any] = {name: None for name in data if name not in wanted}
        change |= {name: value for name, value in wanted.items() if data.get(name) != value}
        try:
            self._objects.merge(self._path, {"data": change}, version=version_of(there))
        except ChangedMeanwhileError:
            # Another keeper, or somebody by hand: the next look sees what it became.
            return False
        return True

    def _is_good(self, until: str, now: datetime) -> bool:
        """Whether what the list says of itself may stay: it is renewed at half of its time, and never too long."""
        try:
            left = datetime.fromisoformat(until) - now
        except (ValueError, TypeError):
            return False
        return self._good_for / 2 < left <= self._good_for

    def _look(self) -> None:
        moment, now, now_s = self._records.deployable.moment(), self._clock(), time.monotonic()
        ended = self._ends is not None and now >= self._ends
        if moment == self._seen and not ended and now_s - self._computed_s < _ANEW_S:
            return
        verdicts = [
            one for reference in self._records.deployable.named(MAX_VERSIONS) for one in self._said_of(reference)
        ]
        found = approval_list(verdicts)
        if found.left_out:
            logger.warning("%d versions have no place on the list of approvals, and are refused", found.left_out)
        ends = [datetime.fromisoformat(one.until) for one in verdicts if one.until is not None]
        self._list, self._seen, self._computed_s = found.data, moment, now_s
        self._ends = min((one for one in ends if one > now), default=None)

    def _said_of(self, reference: ModelReference) -> list[Verdict]:
        """What is said of a version, under each name that a workload may have for it."""
        if not _is_one(reference.text):
            return []
        try:
            verdict = self._verdicts.on(reference)
        except ProctorError as error:
            # Of one version: it is not on the list, and so refused; the others are not held up by it.
            logger.warning("a version is not on the list of approvals: %s", error)
            return []
        other = reference.name.replace("~", "/")
        names = dict.fromkeys((reference.name, other))
        return [verdict.model_copy(update={"reference": f"{name}@{reference.version}"}) for name in names]


def _is_one(text: str) -> bool:
    """Whether a workload can name it."""
    try:
        return len(text) <= MAX_REFERENCE_CHARACTERS and len(references_of(text)) == 1
    except BadInputError:
        return False


@contextmanager
def keeping_approvals(settings: Settings) -> Iterator[None]:
    """Keep the list that PROCTOR_ADMISSION_APPROVALS names while the block lasts; nothing where it names none.

    Raises:
        BadInputError: it names no ConfigMap, or this is no pod.
    """
    if settings.admission_approvals is None:
        yield
        return
    path = approvals_path(settings.admission_approvals)
    stop = threading.Event()
    with closing(KubernetesObjects.in_cluster()) as objects:
        thread = threading.Thread(target=_keep, args=(settings, objects, path, stop), name="approvals", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def approvals_path(text: str) -> str:
    """The path of the ConfigMap that `NAMESPACE/NAME` names.

    Raises:
        BadInputError: it names none.
    """
    namespace, slash, name = text.partition("/")
    if not slash:
        raise BadInputError(f"PROCTOR_ADMISSION_APPROVALS is {text[:80]!r}; write NAMESPACE/NAME of a ConfigMap")
    return f"/api/v1/namespaces/{object_name(namespace)}/configmaps/{object_name(name)}"


def _keep(settings: Settings, objects: KubernetesObjects, path: str, stop: threading.Event) -> None:
    keeper: ApprovalsKeeper | None = None
    records: Records | None = None
    try:
        while not stop.is_set():
            try:
                if records is None or keeper is None:
                    records = Records(settings.records_url, migrate=False)
                    verdicts = Verdicts(settings, records.deployable)
                    good_for = timedelta(seconds=settings.admission_stale_s)
                    keeper = ApprovalsKeeper(objects, path, records, verdicts, good_for=good_for)
                keeper.keep()
            except ProctorError as error:
                logger.warning("the list of approvals stays as it is: %s", error)
            except Exception:
                logger.exception("the list of approvals stays as it is")
            stop.wait(LOOK_S)
    finally:
        if records is not None:
            records.close()
