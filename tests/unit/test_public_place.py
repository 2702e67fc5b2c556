"""A URL that no operator named leads to no private address, whatever its name has for addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.host import is_public
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.http import public_place
from proctor.inference.http.openai import OpenAIBackend
from proctor.inference.http.public_place import peer_check, place_of, public_addresses
from proctor.inference.worker.open_backend import open_backend
from proctor.runtime.settings import Settings
from proctor.runtime.triton_channel import triton_address

PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.5.4",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "2002:7f00:0001::1",
    "2002:a9fe:a9fe::1",
    "64:ff9b::a9fe:a9fe",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "not an address",
    "",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_of_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and their addresses, as every look-up in a test sees them."""
    names: dict[str, list[str]] = {}

    async def look_up(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        if host not in names:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in names[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)
    return names


def test_one_private_address_among_public_ones_is_enough_to_refuse_a_name(resolver: dict[str, list[str]]) -> None:
    resolver["models.example"] = ["1.1.1.1", "10.0.0.7"]
    with pytest.raises(EndpointError, match=r"'models.example' is at 10\.0\.0\.7, which is not a public address"):
        asyncio.run(public_addresses("models.example", 443))


def test_a_name_without_an_address_is_refused(resolver: dict[str, list[str]]) -> None:
    with pytest.raises(EndpointError, match="has no address"):
        asyncio.run(public_addresses("models.example", 443))


def test_a_channel_goes_to_the_checked_addresses_under_the_name_of_the_url(resolver: dict[str, list[str]]) -> None:
    resolver["models.example"] = ["1.1.1.1", "1.0.0.1"]
    place = asyncio.run(place_of(triton_address("grpcs://models.example:8443"), None, public_only=True))
    assert place.target == "ipv4:1.1.1.1:8443,1.0.0.1:8443"
    options = dict(place.options)
    assert options["grpc.ssl_target_name_override"] == options["grpc.default_authority"] == "models.example"
    assert options["grpc.enable_http_proxy"] == 0


def test_an_address_that_was_found_keeps_the_name_of_its_certificate() -> None:
    place = asyncio.run(place_of(triton_address("grpcs://10.0.0.1:8443"), "triton.models.svc", public_only=False))
    assert place.target == "10.0.0.1:8443"
    assert dict(place.options)["grpc.ssl_target_name_override"] == "triton.models.svc"


def test_an_endpoint_that_an_operator_named_is_connected_to_as_it_stands() -> None:
    assert asyncio.run(place_of(triton_address("grpc://localhost"), None, public_only=False)) == ("localhost:8001", ())


class Peer:
    """A connection, as httpx shows it."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self.closed = False

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        assert name == "server_addr"
        return None if self._address is None else (self._address, 443)

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("address", ["127.0.0.1", None])
def test_a_connection_that_leads_elsewhere_than_the_look_up_said_is_closed_unused(
    resolver: dict[str, list[str]], address: str | None
) -> None:
    resolver["models.example"] = ["1.1.1.1"]
    peer, trace = Peer(address), peer_check()

    async def connect() -> None:
        await trace("connection.connect_tcp.started", {"host": "models.example", "port": 443})
        await trace("connection.connect_tcp.complete", {"return_value": peer})

    with pytest.raises(EndpointError, match="not a public address"):
        asyncio.run(connect())
    assert peer.closed


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


SCHEMES = {"openai": "https", "infer": "https", "triton": "grpcs"}


def spec(backend: Any, url: str) -> EndpointSpec:
    return EndpointSpec(backend=backend, url=url, served_name="m", model_version=None, public_only=True)


@pytest.mark.parametrize("backend", SCHEMES)
def test_no_backend_connects_to_a_private_address(backend: str, listener: socket.socket, tmp_path: Path) -> None:
    url = f"{SCHEMES[backend]}://localhost:{listener.getsockname()[1]}"
    trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")

    async def use() -> str:
        one = open_backend(spec(backend, url), Settings(home=tmp_path))
        try:
            found = await one.probe()
            assert not found.ok
            with pytest.raises(EndpointError, match="not a public address"):
                await one.complete([trial], Decoding(), deadline_s=5.0)
            return found.detail
        finally:
            await one.close()

    assert "not a public address" in asyncio.run(use())
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("backend", SCHEMES)
def test_a_way_that_is_not_encrypted_is_refused(backend: str, tmp_path: Path) -> None:
    url = f"{SCHEMES[backend].removesuffix('s')}://models.example"
    with pytest.raises(BadInputError, match="is not encrypted"):
        open_backend(spec(backend, url), Settings(home=tmp_path))


def test_the_address_is_checked_at_every_connection_and_not_once(
    resolver: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def noted(address: str) -> bool:
        checked.append(address)
        return True

    monkeypatch.setattr(public_place, "is_public", noted)
    resolver["models.example"] = ["1.1.1.1"]

    async def connect_twice() -> None:
        for _ in range(2):
            await peer_check()("connection.connect_tcp.started", {"host": "models.example", "port": 443})

    asyncio.run(connect_twice())
    assert checked == ["1.1.1.1"] * 2


def test_an_endpoint_that_only_a_suite_brought_gets_no_key_of_the_operators() -> None:
    sent = {}
    for gets_keys in (False, True):
        settings = spec("openai", "https://models.example").model_copy(update={"gets_keys": gets_keys})
        one = OpenAIBackend(settings, environ={"PROCTOR_API_KEY": "a-secret-key", "OPENAI_API_KEY": "another-one"})
        sent[gets_keys] = one._endpoint._key
    assert sent == {False: None, True: "a-secret-key"}
