"""Replicas by EndpointSlices of a real API server, for an account that may list and watch those and nothing else."""

from __future__ import annotations

import asyncio
import gc
import random
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kubernetes.aio import client, config

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.inference.balancing.discovery.endpoint_slices import EndpointSlices
from proctor.inference.worker import retry
from tests.cluster.accounts import account, slices_rules
from tests.cluster.kit import Cluster, is_ready, pods
from tests.discoveries import Seen, watching

pytestmark = pytest.mark.cluster
SERVICE = "triton"
WITHIN_S = 60.0
#: Ready while a file is there; without a shell's grace, because nothing is in hand.
SERVER = "import http.server as s; s.HTTPServer(('', 8000), s.SimpleHTTPRequestHandler).serve_forever()"


class Room(NamedTuple):
    """A namespace with an account for discovery."""

    cluster: Cluster
    namespace: str
    kubeconfig: Path

    def ctl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments)

    def put(self, name: str, *addresses: str, family: str = "IPv4", service: str = SERVICE, **conditions: bool) -> None:
        """A slice as somebody's controller would write it."""
        self.cluster.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
                "addressType": family,
                "endpoints": [{"addresses": [one], "conditions": conditions} for one in addresses],
                "ports": [{"name": "grpc", "port": 8001}, {"name": "http", "port": 8000}],
            },
            namespace=self.namespace,
        )

    def urls(self) -> list[str]:
        """Where the ready pods of the service are, by their own word."""
        found = [pod for pod in pods(self.cluster, self.namespace, app="triton") if is_ready(pod)]
        return sorted(f"grpc://{pod['status']['podIP']}:8001" for pod in found)

    def watched(self, use: Callable[[Seen], Awaitable[None]], **settings: Any) -> None:
        """Have a test see what is found meanwhile."""
        asked = {"namespace": self.namespace, "service": SERVICE, "port": "grpc", "resync_s": 300.0} | settings

        async def main() -> None:
            configuration = client.Configuration()
            await config.load_kube_config(str(self.kubeconfig), client_configuration=configuration)
            slices = EndpointSlices(
                EndpointSliceDiscovery.model_validate(asked), configuration=configuration, rng=random.Random(0)
            )
            async with watching(slices) as seen:
                await asyncio.wait_for(use(seen), WITHIN_S)

        asyncio.run(main())
        with warnings.catch_warnings():
            # aiohttp ends TLS a moment after it closed a connection, and the loop is gone by then; a worker's goes on.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture
def room(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    monkeypatch.setattr(retry, "_BASE_S", 0.1)
    with cluster.namespace("kube-slices") as namespace:
        yield Room(cluster, namespace, account(cluster, namespace, "inference", slices_rules(), tmp_path))


def test_every_ready_address_of_every_slice_is_a_replica_once(room: Room) -> None:
    room.put("first", "10.0.0.1", "10.0.0.2")

    async def use(seen: Seen) -> None:
        await seen.until_found("grpc://10.0.0.1:8001", "grpc://10.0.0.2:8001")
        room.put("second", "10.0.0.2", "10.0.0.3")
        room.put("sixth", "fd00::7", family="IPv6")
        room.put("other", "10.9.9.9", service="another")
        await seen.until_found(
            "grpc://10.0.0.1:8001", "grpc://10.0.0.2:8001", "grpc://10.0.0.3:8001", "grpc://[fd00::7]:8001"
        )
        room.ctl("delete", "endpointslice", "first")
        await seen.until_found("grpc://10.0.0.2:8001", "grpc://10.0.0.3:8001", "grpc://[fd00::7]:8001")
        assert seen.names == {f"{SERVICE}.{room.namespace}.svc"}

    room.watched(use)


def test_the_url_has_the_named_port_the_scheme_and_the_path(room: Room) -> None:
    room.put("first", "10.0.0.1")

    async def use(seen: Seen) -> None:
        await seen.until_found("http://10.0.0.1:8000/v1")

    room.watched(use, port="http", scheme="http", path="/v1")


def test_an_address_that_is_not_ready_or_is_leaving_is_let_go_and_taken_up_again(room: Room) -> None:
    room.put("first", "10.0.0.1", ready=True)

    async def use(seen: Seen) -> None:
        url = "grpc://10.0.0.1:8001"
        await seen.until_found(url)
        room.put("first", "10.0.0.1", ready=False)
        await seen.until_found()
        room.put("first", "10.0.0.1")
        await seen.until_found(url)
        room.put("first", "10.0.0.1", ready=True, terminating=True)
        await seen.until_found()

    room.watched(use)


def test_an_account_that_may_look_no_more_says_so_and_what_was_found_stays(room: Room) -> None:
    room.put("first", "10.0.0.1")
    binding = room.ctl("get", "rolebinding", "inference", "-o", "json")

    async def use(seen: Seen) -> None:
        await seen.until_found("grpc://10.0.0.1:8001")
        room.ctl("delete", "rolebinding", "inference")
        await seen.until(lambda: any("403" in cause for cause in seen.missed))
        assert seen.found == [["grpc://10.0.0.1:8001"]]
        room.cluster.kubectl("-n", room.namespace, "create", "-f", "-", input=binding)
        room.put("first", "10.0.0.2")
        await seen.until_found("grpc://10.0.0.2:8001")

    # The watch that is open outlives the account's rights; the next list does not.
    room.watched(use, resync_s=1.0)


def test_the_account_may_neither_read_what_else_is_there_nor_change_what_it_watches(room: Room) -> None:
    name = f"system:serviceaccount:{room.namespace}:inference"
    for verb, resource, allowed in (
        ("list", "endpointslices", True),
        ("watch", "endpointslices", True),
        ("update", "endpointslices", False),
        ("list", "secrets", False),
        ("list", "pods", False),
    ):
        asked = room.cluster.run("-n", room.namespace, "auth", "can-i", verb, resource, f"--as={name}")
        assert (verb, resource, asked.stdout.strip()) == (verb, resource, "yes" if allowed else "no")


def pods_of(replicas: int) -> list[dict[str, Any]]:
    """A service whose pods become ready when somebody lets them."""
    labels = {"app": "triton"}
    container = {
        "name": "server",
        "image": "proctor/router:0.1.0",
        "command": ["python3", "-c", SERVER],
        "readinessProbe": {
            "exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
        },
    }  # fmt: skip
    spec = {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }  # fmt: skip
    template = {"metadata": {"labels": labels}, "spec": spec}
    ports = [{"name": "grpc", "port": 8001}, {"name": "http", "port": 8000}]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": SERVICE},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE},
            "spec": {"clusterIP": "None", "selector": labels, "ports": ports},
        },
    ]


def test_pods_are_replicas_from_when_they_are_ready_until_they_are_not_or_leave(room: Room, images: None) -> None:
    room.cluster.apply(*pods_of(2), namespace=room.namespace)
    room.cluster.wait("-n", room.namespace, "pods", "-l", "app=triton",
                      "--for=jsonpath={.status.phase}=Running", within_s=60)  # fmt: skip
    first, second = room.ctl("get", "pods", "-l", "app=triton", "-o", "jsonpath={.items[*].metadata.name}").split()

    async def use(seen: Seen) -> None:
        await seen.until(lambda: bool(seen.found))
        assert seen.found == [[]]
        room.ctl("exec", first, "--", "touch", "/tmp/ready")
        await seen.until(lambda: len(seen.found[-1]) == 1)
        assert seen.found[-1] == room.urls()
        room.ctl("exec", second, "--", "touch", "/tmp/ready")
        await seen.until(lambda: len(seen.found[-1]) == 2)
        both = seen.found[-1]
        assert both == room.urls()
        room.ctl("exec", first, "--", "rm", "/tmp/ready")
        await seen.until(lambda: len(seen.found[-1]) == 1)
        left = seen.found[-1]
        assert set(left) < set(both)
        room.ctl("delete", "pod", second, "--wait=false")
        await seen.until_found()
        assert seen.missed == []

    room.watched(use)
