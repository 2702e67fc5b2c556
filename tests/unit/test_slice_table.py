"""What the EndpointSlices of a service say together, of documents as the API has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.inference.balancing.discovery.slice_table import SliceTable


def table(**settings: Any) -> SliceTable:
    asked = {"namespace": "models", "service": "triton", "port": "grpc"} | settings
    return SliceTable(EndpointSliceDiscovery.model_validate(asked))


def one(name: str, *addresses: str, family: str = "IPv4", **conditions: bool | None) -> SimpleNamespace:
    said = {"ready": True, "serving": True, "terminating": None} | conditions
    endpoints = [SimpleNamespace(addresses=[address], conditions=SimpleNamespace(**said)) for address in addresses]
    ports = [SimpleNamespace(name="grpc", port=8001), SimpleNamespace(name="http", port=8000)]
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name), address_type=family, endpoints=endpoints, ports=ports
    )  # fmt: skip


def urls(found: SliceTable) -> list[str]:
    return [replica.replica.url for replica in found.found()]


def test_an_address_of_several_slices_is_one_replica_until_the_last_of_them_is_gone() -> None:
    slices = table()
    slices.put(one("first", "10.0.0.1", "10.0.0.2"))
    slices.put(one("second", "10.0.0.2"))
    slices.put(one("sixth", "fd00::7", family="IPv6"))
    assert urls(slices) == ["grpc://10.0.0.1:8001", "grpc://10.0.0.2:8001", "grpc://[fd00::7]:8001"]
    slices.remove(one("first"))
    assert urls(slices) == ["grpc://10.0.0.2:8001", "grpc://[fd00::7]:8001"]
    assert {found.server_name for found in slices.found()} == {"triton.models.svc"}


def test_the_url_has_the_named_port_the_scheme_and_the_path() -> None:
    slices = table(port="http", scheme="http", path="/v1")
    slices.put(one("first", "10.0.0.1"))
    assert urls(slices) == ["http://10.0.0.1:8000/v1"]
    other = table(port="metrics")
    other.put(one("first", "10.0.0.1"))
    assert urls(other) == []


def test_what_is_not_ready_or_leaves_is_none_and_what_is_not_said_is_ready() -> None:
    slices = table()
    for conditions, found in (
        ({"ready": False}, []),
        ({"terminating": True}, []),
        ({"ready": None}, ["grpc://10.0.0.1:8001"]),
    ):
        slices.put(one("first", "10.0.0.1", **conditions))
        assert urls(slices) == found
