"""What a host is, and what a URL says, is decided in one place: whoever reads by themselves may read otherwise."""

from __future__ import annotations

import ast
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

import proctor
from proctor.domain.endpoint_url import endpoint_url
from proctor.domain.errors import BadInputError, RegistryError
from proctor.gateway.client import ServerAddress
from proctor.inference.http.address import http_address
from proctor.registry.mlflow_client import MlflowClient
from proctor.runtime.artifacts.location import s3_location
from proctor.runtime.grpc.serving import Address
from proctor.runtime.triton_channel import triton_address

PRODUCT = Path(proctor.__file__).parent
READERS = {"urlsplit", "urlparse", "ipaddress"}
THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
#: Module → why it may.
ALLOWED = {
    "domain/host.py": "says which host is this machine",
    "domain/url.py": "is the reader",
}


def other_readings(source: str) -> Iterator[str]:
    """Names of other readers, and hosts of this machine that stand alone in the code, in the order of lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (f"{node.lineno}: {name.name}" for name in names if name.name in READERS)
            case ast.Attribute(attr=name) if name in READERS or name == "is_loopback":
                yield f"{node.lineno}: .{name}"
            case ast.Constant(value=str(text)) if text in THIS_MACHINE:
                yield f"{node.lineno}: {text!r}"
            case _:
                pass


def test_nobody_but_the_reader_takes_a_url_or_a_host_apart() -> None:
    sources = {str(path.relative_to(PRODUCT)): path.read_text() for path in PRODUCT.rglob("*.py")}
    found = {name: list(other_readings(source)) for name, source in sources.items()}
    assert {name: readings for name, readings in found.items() if readings and name not in ALLOWED} == {}
    assert all(found[name] for name in ALLOWED), "an exception that nobody needs"


def test_another_reader_is_found_however_it_is_imported() -> None:
    source = (
        "from urllib.parse import urlsplit\nimport ipaddress\nurllib.parse.urlparse(x)\n"
        "near = host in ('localhost', '::1')\nip.is_loopback\nurl = 'http://127.0.0.1:5'\n"
    )
    assert sorted(other_readings(source)) == [
        "1: urlsplit",
        "2: ipaddress",
        "3: .urlparse",
        "4: '::1'",
        "4: 'localhost'",
        "5: .is_loopback",
    ]


ODD = [
    "http://0177.0.0.1",
    "http://127.1",
    "http://a\\@b",
    "http://host.",
    "http://[::ffff:127.0.0.1]",
    "http://h/%2e%2e",
]


@pytest.mark.parametrize("url", ODD)
def test_what_readers_take_for_different_places_is_refused_wherever_it_is_written(url: str) -> None:
    grpc = url.replace("http", "grpc")
    with pytest.raises(BadInputError, match="is not a URL like"):
        http_address(url, example="https://host")
    with pytest.raises(ValueError, match="grpc"):
        triton_address(grpc)
    with pytest.raises(BadInputError, match="--server is"):
        ServerAddress.parse(grpc)
    with pytest.raises(BadInputError, match="the S3 endpoint"):
        s3_location("s3://evidence", url)
    with pytest.raises(RegistryError, match="no http or https URL"):
        MlflowClient(url, environ={})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_this_machine_is_the_same_for_all_who_ask(host: str) -> None:
    assert http_address(f"http://{host}:1", example="").loopback
    assert triton_address(f"grpc://{host}:1").loopback
    assert ServerAddress.parse(f"grpc://{host}:1").address.loopback
    assert Address.parse(f"{host}:1").loopback
    assert endpoint_url(f"http://{host}:1").is_local


def test_a_registry_s_user_and_password_are_read_and_not_kept_in_its_url() -> None:
    with MlflowClient("http://me%40work:pa:ss@Host:5000/mlflow/", environ={}) as client:
        assert client.uri == "http://host:5000/mlflow"
        request = client._http.build_request("GET", "x")
        auth = client._http.auth
        assert auth is not None
        sent = next(auth.sync_auth_flow(request)).headers["Authorization"]
    assert b64decode(sent.removeprefix("Basic ")) == b"me@work:pa:ss"
