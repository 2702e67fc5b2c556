"""How replicas are found: by DNS, and by the EndpointSlices of Kubernetes (over a mock of its API)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proctor.domain.endpoint import DnsDiscovery, EndpointSliceDiscovery
from proctor.inference.balancing.discovery.dns import DnsNames, with_host
from proctor.inference.balancing.discovery.endpoint_slices import EndpointSlices
from proctor.inference.balancing.discovery.found import Discovery, Found
from proctor.inference.look_up import addresses_of
from proctor.inference.worker import retry
from tests.mock_kubernetes_api import NAMESPACE, SERVICE, MockKubernetesApi, mock_kubernetes_api
from tests.support import missing


class Seen:
    """What a discovery said."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.names: set[str | None] = set()
        self.missed: list[str] = []

    def take(self, found: Sequence[Found]) -> None:
        self.found.append([one.replica.url for one in found])
        self.names |= {one.server_name for one in found}

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - a discovery knows no events
            await asyncio.sleep(0.005)

    async def until_found(self, *urls: str) -> None:
        await self.until(lambda: bool(self.found) and self.found[-1] == list(urls))


@asynccontextmanager
async def watching(discovery: Discovery) -> AsyncIterator[Seen]:
    seen = Seen()
    task = asyncio.create_task(discovery.watch(seen.take, seen.missed.append))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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


def test_every_ready_address_of_every_slice_is_a_replica_once() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until_found("grpc://10.0.0.1:8001", "grpc://10.0.0.2:8001")
        await api.put("second", "10.0.0.2", "10.0.0.3")
        await api.put("sixth", "fd00::7")
        await api.put("other", "10.9.9.9", service="another")
        await seen.until_found(
            "grpc://10.0.0.1:8001", "grpc://10.0.0.2:8001", "grpc://10.0.0.3:8001", "grpc://[fd00::7]:8001"
        )
        await api.remove("first")
        await seen.until_found("grpc://10.0.0.2:8001", "grpc://10.0.0.3:8001", "grpc://[fd00::7]:8001")
        assert seen.names == {"triton.models.svc"}

    with_cluster(use, "10.0.0.1", "10.0.0.2")


def test_the_url_has_the_named_port_the_scheme_and_the_path() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until_found("http://10.0.0.1:8000/v1")

    with_cluster(use, "10.0.0.1", port="http", scheme="http", path="/v1")


def test_an_address_that_is_not_ready_or_is_leaving_is_let_go_and_taken_up_again() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        url = "grpc://10.0.0.1:8001"
        await seen.until_found(url)
        await api.put("first", "10.0.0.1", ready=False)
        await seen.until_found()
        await api.put("first", "10.0.0.1")
        await seen.until_found(url)
        await api.put("first", "10.0.0.1", terminating=True)
        await seen.until_found()
        await api.put("first", "10.0.0.1", ready=None)
        await seen.until_found(url)

    with_cluster(use, "10.0.0.1")


def test_a_version_that_is_too_old_has_the_list_asked_for_anew() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: len(api.watched_from) == 1)
        await api.forget()
        await seen.until(lambda: len(api.watched_from) == 2)
        assert api.lists == 2
        assert api.watched_from[1] > api.watched_from[0]
        await api.put("first", "10.0.0.5")
        await seen.until_found("grpc://10.0.0.5:8001")
        assert seen.missed == []

    with_cluster(use, "10.0.0.1")


def test_a_broken_connection_is_made_again_and_what_was_missed_is_found() -> None:
    async def use(api: MockKubernetesApi, seen: Seen) -> None:
        await seen.until(lambda: len(api.watched_from) == 1)
        api.drop()
        await api.put("first", "10.0.0.8")
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
        await api.put("first", "10.0.0.2")
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
