"""Replicas by Kubernetes: every ready address in the EndpointSlices of a service.

Source: Kubernetes, "EndpointSlices" and "Kubernetes API Concepts" (list, then watch from the list's resourceVersion;
410 Gone means that the version is too old, and the list is asked for anew).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.errors import EndpointError
from proctor.inference.balancing.discovery.found import Found
from proctor.inference.balancing.discovery.slice_table import SliceTable
from proctor.inference.worker.backend import printable
from proctor.inference.worker.retry import backoff_s

_SERVICE_LABEL: Final = "kubernetes.io/service-name"
#: How much longer than it was asked to a server may keep a watch open before the connection counts as dead.
_GRACE_S: Final = 10
_GONE: Final = 410


class EndpointSlices:
    """Watches the slices of a service, and lists them anew every so often, in case the watch missed something."""

    def __init__(
        self,
        settings: EndpointSliceDiscovery,
        *,
        configuration: Any = None,
        rng: random.Random | None = None,
    ) -> None:
        """
        Args:
            settings: the service.
            configuration: of the Kubernetes client; in-cluster, else from the kubeconfig, where None.
            rng: draws the jitter of the waits after a failure.
        """
        self._settings = settings
        self._configuration = configuration
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._published: tuple[Found, ...] | None = None

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        """See `Discovery.watch`.

        Raises:
            EndpointError: the package `kubernetes` is missing.
        """
        try:
            from kubernetes.aio import client
        except ModuleNotFoundError as error:
            raise EndpointError(
                f"replicas cannot be found by Kubernetes, because the package {error.name!r} is missing; install "
                "proctor[kubernetes]"
            ) from error
        failures = 0
        while True:
            try:
                async with client.ApiClient(self._configuration or await _configuration()) as api:
                    slices = client.DiscoveryV1Api(api)
                    while True:
                        await self._list_and_watch(slices, found)
                        failures = 0
            except asyncio.CancelledError:
                raise
            except Exception as error:
                # Of many kinds: refused, dropped, no configuration, not allowed, not JSON. None of them ends the
                # watch, and what was found stays in use.
                failures += 1
                missed(printable(f"{type(error).__name__}: {error}")[:300])
                await asyncio.sleep(backoff_s(failures, self._rng))

    async def _list_and_watch(self, slices: Any, found: Callable[[Sequence[Found]], None]) -> None:
        """List, then follow the changes until it is time to list again."""
        from kubernetes.aio import client, watch

        settings = self._settings
        asked = {"namespace": settings.namespace, "label_selector": f"{_SERVICE_LABEL}={settings.service}"}
        timeout_s = max(int(settings.resync_s), 1)
        listed = await slices.list_namespaced_endpoint_slice(**asked, _request_timeout=_GRACE_S)
        table = SliceTable(settings)
        for one in listed.items:
            table.put(one)
        self._publish(table, found)
        watcher = watch.Watch()
        events = watcher.stream(
            slices.list_namespaced_endpoint_slice,
            **asked,
            resource_version=listed.metadata.resource_version,
            timeout_seconds=timeout_s,
            _request_timeout=timeout_s + _GRACE_S,
        )
        try:
            async with watcher:
                async for event in events:
                    if event["type"] == "DELETED":
                        table.remove(event["object"])
                    elif event["type"] in ("ADDED", "MODIFIED"):
                        table.put(event["object"])
                    self._publish(table, found)
        except client.ApiException as error:
            if error.status != _GONE:
                raise

    def _publish(self, table: SliceTable, found: Callable[[Sequence[Found]], None]) -> None:
        now = table.found()
        if now != self._published:
            self._published = now
            found(now)


async def _configuration() -> Any:
    """That of the pod, else that of the kubeconfig."""
    from kubernetes.aio import client, config

    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        await config.load_kube_config(client_configuration=configuration)
    return configuration
