"""One reader takes an endpoint's URL apart, and refuses what other readers could take for another place."""

from __future__ import annotations

import ipaddress
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.domain.endpoint_url import EndpointUrl, OddUrlError, endpoint_url
from proctor.domain.url import shown


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("grpc://triton_a:8001", ("grpc", "triton_a", 8001, "")),
        ("grpcs://host", ("grpcs", "host", 8001, "")),
        ("HTTPS://Models.Example/v1/", ("https", "models.example", 443, "/v1")),
        ("https://models.example:443/v1", ("https", "models.example", 443, "/v1")),
        ("http://10.0.0.7:80", ("http", "10.0.0.7", 80, "")),
        ("http://[2001:DB8:0::1]:8000/a/b", ("http", "2001:db8::1", 8000, "/a/b")),
        ("in-process://reference", ("in-process", "reference", None, "")),
        ("unix:///home/me/.proctor/run/triton/g:1", ("unix", "", None, "/home/me/.proctor/run/triton/g:1")),
    ],
)
def test_a_url_is_taken_apart_so_that_equal_places_are_equal(url: str, parts: tuple[object, ...]) -> None:
    assert endpoint_url(url) == parts
    assert endpoint_url(endpoint_url(url).text) == parts


@pytest.mark.parametrize(
    "url",
    [
        "unix:///",
        "unix://run/triton",
        "unix:///run/../etc/triton",
        "unix:///run/triton?x",
        "unix:///run/a b",
        "http://127.0.0.1@evil.example/v1",
        "http://user:secret@host",
        "http://host/v1?key=secret",
        "http://host/v1#@evil.example",
        "http://127.0.0.1\\@evil.example/v1",
        "http://127.0.0.1\\.evil.example",
        "http://evil.example\t/v1",
        "http://host/v1\n",
        " http://host",
        "http:///v1",
        "http://",
        "http:host",
        "//host/v1",
        "file:///etc/passwd",
        "gopher://host:70/x",
        "http://0177.0.0.1",
        "http://0x7f.0.0.1",
        "http://0x7f000001",
        "http://2130706433",
        "http://127.1",
        "http://127.0.0.01",
        "http://256.0.0.1",
        "http://1.2.3.4.5",
        "http://host.9",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:7f00:1]",
        "http://[fe80::1%25eth0]",
        "http://[::1",
        "http://[localhost]",
        "http://::1/v1",
        "http://localhost.",
        "http://127.0.0.1.",
        "http://.example",
        "http://a..b",
        "http://-a.example",
        "http://a-.example",
        "http://lоcalhost",
        "http://①②⑦.0.0.1",
        "http://localhost。evil.example",
        "http://ex%61mple.com",
        "http://host:0",
        "http://host:65536",
        "http://host:80a",
        "http://host:",
        "http://host:+80",
        "http://host:８０",
        "http://host/v1/../admin",
        "http://host/v1/./x",
        "http://host/v1/%2e%2e/admin",
        "http://host/v1//admin",
        "http://host/v1\\admin",
        "http://host/v1;\x00",
        "http://" + "a" * 64,
        "http://host/" + "a" * 5000,
    ],
)
def test_what_readers_could_take_for_different_places_is_refused(url: str) -> None:
    with pytest.raises(OddUrlError) as refusal:
        endpoint_url(url)
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


@given(
    st.text(max_size=40), st.sampled_from(["", "http://", "grpcs://", "https://127.0.0.1", "http://[", "https://a/"])
)
def test_any_text_is_a_plain_url_or_refused(text: str, start: str) -> None:
    try:
        found = endpoint_url(start + text)
    except OddUrlError:
        return
    assert found.host.isascii()
    assert found.host.isprintable()
    assert not {"@", "\\", "%", " ", "/"} & set(found.host)
    assert ".." not in found.path.split("/")


@given(st.ip_addresses())
def test_an_address_is_of_this_machine_exactly_if_it_is_loopback(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    host = f"[{address}]" if address.version == 6 else str(address)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return
    assert endpoint_url(f"http://{host}").is_local == address.is_loopback


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8000", True),
        ("http://LOCALHOST", True),
        ("grpc://127.9.9.9:8001", True),
        ("http://[::1]/v1", True),
        ("in-process://reference", True),
        ("http://localhost.example", False),
        ("http://0.0.0.0", False),
        ("http://[::]", False),
        ("http://169.254.169.254", False),
    ],
)
def test_a_place_is_of_this_machine_by_loopback_alone(url: str, local: bool) -> None:
    assert endpoint_url(url).is_local is local


@pytest.mark.parametrize(
    ("listed", "asked", "covered"),
    [
        ("https://host/v1", "https://host/v1", True),
        ("https://host/v1", "https://HOST:443/v1/", True),
        ("https://host/v1", "https://host/v1/models/a", True),
        ("https://host", "https://host/anything", True),
        ("https://host/v1", "https://host/v10", False),
        ("https://host/v1", "https://host", False),
        ("https://host/v1", "http://host/v1", False),
        ("https://host/v1", "https://host:8443/v1", False),
        ("https://host/v1", "https://sub.host/v1", False),
        ("https://host/v1", "https://host.evil/v1", False),
    ],
)
def test_a_place_covers_itself_and_what_is_below_its_path(listed: str, asked: str, covered: bool) -> None:
    assert endpoint_url(listed).covers(endpoint_url(asked)) is covered


def test_a_message_shows_where_a_secret_stood_and_not_the_secret() -> None:
    with pytest.raises(OddUrlError, match=r'^the endpoint "https://…@host/v1…" has a user name, a query'):
        endpoint_url("https://user:secret@host/v1?key=secret")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("HTTPS://Host:443/v1/", "https://host/v1"),
        ("http://host:8000", "http://host:8000"),
        ("grpc://host", "grpc://host:8001"),
        ("http://[0:0::1]:9/infer", "http://[::1]:9/infer"),
        ("in-process://reference", "in-process://reference"),
    ],
)
def test_a_place_has_one_form_however_it_is_written(url: str, text: str) -> None:
    assert endpoint_url(url).text == text


def test_the_parts_are_a_plain_tuple() -> None:
    assert endpoint_url("http://a") == EndpointUrl("http", "a", 80, "")


@given(st.text("/@?#ab:", max_size=14))
@example("///@")
def test_whatever_may_be_a_secret_is_cut_out_of_a_message(url: str) -> None:
    defined = re.sub(r"[?#].*|(?<=//).*(?=@)", "…", url, flags=re.DOTALL)
    # Behind "///" nothing more is found before the "@", and replaced as well.
    defined = defined.replace("……", "…")
    assert json.loads(shown(url)) == defined
