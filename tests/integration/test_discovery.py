"""How replicas are found: by DNS, and by the EndpointSlices of Kubernetes where its API server misbehaves (a mock).

What a real one does: `tests/cluster/test_discovery_on_a_cluster.py`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from proctor.domain.endpoint import DnsDiscovery, EndpointSliceDiscovery
from proctor.inference.balancing.discovery.dns import DnsNames, with_host
from proctor.inference.balancing.discovery.endpoint_slices import EndpointSlices
from proctor.inference.look_up import addresses_of
from proctor.inference.worker import retry
from tests.discoveries import Seen, watching
from tests.mock_kubernetes_api import NAMESPACE, SERVICE, MockKubernetesApi, mock_kubernetes_api
from tests.support import missing


def slices(api: MockKubernetesApi, **settings: Any) -> EndpointSlices:
    try:
        from kubernetes.aio import client
    except ModuleNotFoundError:
        missing("the package kubernetes is not installed; run: pip install 'proctor[kubernetes]'")
    settings = {"namespace": NAMESPACE, "service": SERVICE, "port": "grpc"} | settings
    configuration = client.Configuration(host=f"http://127.0.0.1:{api.port}")
    return EndpointSlices(
        EndpointSliceDiscovery(**settings),
        configuration=configuration,
        rng=random.Random(0),
    )


def with_cluster(use: Callable[[MockKubernetesApi, Seen], Awaitable[None]], *addresses: str, **settings: Any) -> None:
    async def main() -> None:
        async with mock_kubernetes_api(addresses) as api, watching(slices(api, **settings)) as seen:
            await use(api, seen)

    asyncio.run(main())


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_BASE_S", 0.01)


def test_a_version_that_is_too_old_has_the_list_asked_for_anew() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: len(api.watched_from) == 1)
        await api.forget()
        await seen.until(lambda: len(api.watched_from) == 2)
        assert api.lists == 2
        assert api.watched_from[1] > api.watched_from[0]
        await api.put("10.0.0.5")
        await seen.until_found("grpc://10.0.0.5:8001")
        assert seen.missed == []

    with_cluster(use, "10.0.0.1")


def test_a_broken_connection_is_made_again_and_what_was_missed_is_found() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: len(api.watched_from) == 1)
        api.drop()
        await api.put("10.0.0.8")
        await seen.until_found("grpc://10.0.0.8:8001")
        assert len(seen.missed) == 1

    with_cluster(use, "10.0.0.1")


def test_a_refused_list_is_said_and_what_was_found_stays() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: len(api.watched_from) == 1)
        api.refuses_lists_with = 403
        api.drop()
        await seen.until(lambda: any("403" in cause for cause in seen.missed))
        assert seen.found == [["grpc://10.0.0.1:8001"]]
        api.refuses_lists_with = 0
        await api.put("10.0.0.2")
        await seen.until_found("grpc://10.0.0.2:8001")

    with_cluster(use, "10.0.0.1")


def test_the_list_is_asked_for_every_so_often_and_nothing_is_said_where_nothing_changed() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: api.lists == 3)
        assert seen.found == [["grpc://10.0.0.1:8001"]]
        assert seen.missed == []

    with_cluster(use, "10.0.0.1", resync_s=1.0)


class Resolver:
    """A resolver that a test tells what to say."""

    def __init__(self, *answers: Sequence[str] | OSError) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


def resolved(resolver: Resolver, use: Callable[[Seen], Awaitable[None]]) -> None:
    async def main() -> None:
        settings = DnsDiscovery(url="grpc://triton.models:8001")
        settings = settings.model_copy(update={"refresh_s": 0.01})
        async with watching(DnsNames(settings, look_up=resolver)) as seen:
            await use(seen)

    asyncio.run(main())


def test_every_address_of_a_name_is_a_replica_and_changes_are_followed() -> None:
    async def use(seen: Seen) -> None:
        await seen.until_found("grpc://10.0.0.2:8001", "grpc://[fd00::1]:8001")
        assert seen.found == [["grpc://10.0.0.1:8001"], ["grpc://10.0.0.2:8001", "grpc://[fd00::1]:8001"]]
        assert seen.names == {"triton.models"}

    resolver = Resolver(["10.0.0.1"], ["10.0.0.1", "10.0.0.1"], ["fd00::1", "10.0.0.2"])
    resolved(resolver, use)
    assert set(resolver.asked) == {"triton.models"}


@pytest.mark.parametrize("failure", [OSError("no such name"), []])
def test_replicas_stay_when_a_name_cannot_be_looked_up(failure: OSError | list[str]) -> None:
    resolver = Resolver(["10.0.0.1"], failure)

    async def use(seen: Seen) -> None:
        await seen.until(lambda: len(resolver.asked) > 3)
        assert seen.found == [["grpc://10.0.0.1:8001"]]
        assert bool(seen.missed) == isinstance(failure, OSError)

    resolved(resolver, use)


def test_the_system_resolver_knows_this_machine() -> None:
    assert {"127.0.0.1", "::1"} & set(asyncio.run(_addresses_of("localhost")))


async def _addresses_of(host: str) -> Sequence[str]:
    return await addresses_of(host)


@pytest.mark.parametrize(
    ("url", "address", "expected"),
    [
        ("https://models.example/v1", "192.0.2.1", "https://192.0.2.1/v1"),
        ("grpc://models.example:8001", "2001:db8::1", "grpc://[2001:db8::1]:8001"),
    ],
)
def test_an_address_stands_in_the_hosts_place(url: str, address: str, expected: str) -> None:
    assert with_host(url, address) == expected
