"""Workloads of a cluster that name a model: what makes Pods, and Pods that nothing made.

What a ReplicaSet or a Job has an owner for is its owner's, and not looked at.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proctor.domain.admission.reference import ModelReference, NoReferenceError
from proctor.domain.admission.workload import named_by, versions_named
from proctor.runtime.kubernetes.client import FORBIDDEN, TIMEOUT_S, KubernetesError, asking
from proctor.runtime.kubernetes.where import NAMESPACE_LABEL, Where

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

logger = logging.getLogger(__name__)

_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#: Objects of an answer, each of which may have a megabyte and a half.
PAGE: Final = 50
#: Objects of one kind in one namespace, and namespaces, that are looked at.
MAX_OBJECTS: Final = 5_000
MAX_NAMESPACES: Final = 200


class Workload(NamedTuple):
    """An object that names versions of models."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    references: tuple[ModelReference, ...]


class Workloads:
    """The workloads of a cluster.

    Args:
        api: its server.
        where: in which namespaces.
    """

    def __init__(self, api: ApiClient, where: Where) -> None:
        from kubernetes.client import AppsV1Api, BatchV1Api, CoreV1Api

        apps, batch, self._core = AppsV1Api(api), BatchV1Api(api), CoreV1Api(api)
        self._where = where
        self._lists: Sequence[tuple[str, str, Callable[..., Any]]] = (
            ("apps/v1", "Deployment", apps.list_namespaced_deployment),
            ("apps/v1", "StatefulSet", apps.list_namespaced_stateful_set),
            ("apps/v1", "DaemonSet", apps.list_namespaced_daemon_set),
            ("apps/v1", "ReplicaSet", apps.list_namespaced_replica_set),
            ("batch/v1", "CronJob", batch.list_namespaced_cron_job),
            ("batch/v1", "Job", batch.list_namespaced_job),
            ("v1", "Pod", self._core.list_namespaced_pod),
        )

    def that_name(self, is_meant: Callable[[ModelReference], bool]) -> Iterator[Workload]:
        """Those that name a version which is meant, with the ones that are.

        A kind that may not be listed is left out.

        Raises:
            KubernetesError: the server does not answer.
        """
        for namespace in self._namespaces():
            for api_version, kind, lists in self._lists:
                try:
                    for found in _pages(lists, f"{kind}s of the namespace {namespace}", namespace):
                        meant = tuple(filter(is_meant, _references(found)))
                        if meant:
                            metadata = found["metadata"]
                            yield Workload(
                                api_version, kind, namespace, str(metadata["name"]), str(metadata["uid"]), meant
                            )
                except KubernetesError as error:
                    if error.status != FORBIDDEN:
                        raise
                    logger.warning("decisions are not told to %ss of the namespace %s: %s", kind, namespace, error)

    def _namespaces(self) -> Sequence[str]:
        if self._where.named:
            return self._where.named
        try:
            found = list(_pages(self._core.list_namespace, "namespaces", label_selector=NAMESPACE_LABEL))
        except KubernetesError as error:
            if error.status != FORBIDDEN:
                raise
            # An installation that keeps to itself.
            own = _own_namespace()
            logger.warning("namespaces may not be listed, so decisions are told in %s alone: %s", own or "none", error)
            return (own,) if own else ()
        if len(found) > MAX_NAMESPACES:
            logger.warning("decisions are told in %d of %d namespaces", MAX_NAMESPACES, len(found))
        return [str(one["metadata"]["name"]) for one in found[:MAX_NAMESPACES]]


def _pages(lists: Callable[..., Any], what: str, *arguments: str, **asked: str) -> Iterator[dict[str, Any]]:
    """Objects as the server gives them, page by page."""
    token, seen = "", 0
    while True:
        with asking(f"{what} cannot be listed"):
            response = lists(
                *arguments, **asked, limit=PAGE, _continue=token or None, _preload_content=False,
                _request_timeout=TIMEOUT_S,
            )  # fmt: skip
            page = json.loads(response.data)
        yield from page["items"]
        seen += len(page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return
        if seen >= MAX_OBJECTS:
            logger.warning("%s: only the first %d are looked at", what, seen)
            return


def _references(found: dict[str, Any]) -> Iterable[ModelReference]:
    """The versions that an object names which nothing made; none where it names what is no version."""
    if found["metadata"].get("ownerReferences"):
        return ()
    try:
        return versions_named(named_by(found))
    except NoReferenceError:
        # Whoever wrote it is told by the gate.
        return ()


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text("utf-8").strip()
    except OSError:
        return ""
