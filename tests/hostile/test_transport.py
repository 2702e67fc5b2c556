"""The line to a gateway: what goes over it in clear text, whose certificates are trusted, and who is let in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest

from proctor.cli.main import main
from proctor.domain.errors import BadInputError, StackError
from proctor.gateway.client import remote_desk
from proctor.gateway.limits import Limits
from proctor.gateway.server import running as gateway_running
from proctor.perturbation.serving.limits import Limits as PerturbationLimits
from proctor.perturbation.serving.server import running as perturbation_running
from proctor.runtime.grpc.serving import MAX_PEM_BYTES, Address, ClientTls, Tls
from tests.certificates import Authority
from tests.integration.audit_support import AuditBench, audit_bench

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


@contextmanager
def listening(bench: AuditBench, tls: Tls) -> Iterator[str]:
    """A gateway under TLS; yields its grpcs:// address by the name `localhost`."""
    began: Queue[Any] = Queue()

    async def serve() -> None:
        stop = asyncio.Event()
        async with gateway_running(bench.desk, Address("127.0.0.1", 0), limits=Limits(), tls=tls) as bound:
            began.put((asyncio.get_running_loop(), stop, bound.port))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop, port = began.get(timeout=20)
    try:
        yield f"grpcs://localhost:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


def listed(server: str, tls: ClientTls | None) -> int:
    with remote_desk(server, None, tls=tls) as desk:
        return len(desk.audits())


@pytest.mark.parametrize("server", ["grpc://audits.example:50061", "grpc://10.0.0.1", "grpc://[2001:db8::1]:1"])
def test_a_token_does_not_go_to_another_machine_in_clear_text(server: str) -> None:
    with pytest.raises(BadInputError, match=r"clear text.*grpcs://.*--insecure"), remote_desk(server, TOKEN):
        pass


@pytest.mark.parametrize("server", ["grpc://127.0.0.1:1", "grpc://localhost:1", "grpc://[::1]:1", "grpcs://a.example"])
def test_a_token_goes_to_this_machine_and_over_tls(server: str) -> None:
    with remote_desk(server, TOKEN):
        pass


def test_who_insists_on_clear_text_is_warned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROCTOR_GATEWAY_TOKEN", TOKEN)
    # Nothing answers there: a name that is reserved for having no address.
    server = ("--server", "grpc://audits.invalid:1")
    assert main(["audit", "list", *server]) == 2
    assert "--insecure" in capsys.readouterr().err
    assert main(["audit", "list", *server, "--insecure"]) == 1
    assert (
        "proctor: warning: PROCTOR_GATEWAY_TOKEN goes to grpc://audits.invalid:1 in clear text"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("PROCTOR_GATEWAY_INSECURE", "1")
    assert main(["audit", "list", *server]) == 1
    assert TOKEN not in capsys.readouterr().err


def test_a_server_of_an_authority_of_one_s_own_is_spoken_to_with_that_authority(
    bench: AuditBench, authority: Authority
) -> None:
    with listening(bench, Tls(*authority.issue("server"))) as server:
        assert listed(server, ClientTls(authority.pem)) == 0
        with pytest.raises(StackError, match=r"not one that is trusted here.*--ca"):
            listed(server, None)


def test_a_server_of_another_authority_is_not_believed(
    bench: AuditBench, authority: Authority, stranger: Authority
) -> None:
    with (
        listening(bench, Tls(*stranger.issue("server"))) as server,
        pytest.raises(StackError, match="not one that is trusted here"),
    ):
        listed(server, ClientTls(authority.pem))


def test_a_server_whose_certificate_has_expired_is_not_believed(bench: AuditBench, authority: Authority) -> None:
    with (
        listening(bench, Tls(*authority.issue("expired", expired=True))) as server,
        pytest.raises(StackError, match="certificate has expired"),
    ):
        listed(server, ClientTls(authority.pem))


def test_a_server_with_a_certificate_of_another_name_is_not_believed(bench: AuditBench, authority: Authority) -> None:
    with (
        listening(bench, Tls(*authority.issue("other", names=("elsewhere.example",)))) as server,
        pytest.raises(StackError, match=r"not one that is trusted here.*a name that stands in it"),
    ):
        listed(server, ClientTls(authority.pem))


def test_only_clients_of_the_server_s_authority_are_let_in(
    bench: AuditBench, authority: Authority, stranger: Authority
) -> None:
    with listening(bench, Tls(*authority.issue("server"), authority.pem)) as server:
        assert listed(server, ClientTls(authority.pem, *authority.issue("client"))) == 0
        for refused in (
            ClientTls(authority.pem),
            ClientTls(authority.pem, *stranger.issue("client")),
            ClientTls(authority.pem, *authority.issue("late", expired=True)),
        ):
            with pytest.raises(StackError, match=r"--certificate and --key"):
                listed(server, refused)


def test_certificates_are_options_and_settings_of_the_command(
    bench: AuditBench, authority: Authority, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = authority.issue("client")
    with listening(bench, Tls(*authority.issue("server"), authority.pem)) as server:
        options = ("--ca", authority.pem, "--certificate", pair.certificate, "--key", pair.key)
        assert main(["audit", "list", "--server", server, *map(str, options)]) == 0
        assert main(["audit", "list", "--server", server, "--ca", str(authority.pem), "--key", str(pair.key)]) == 2
        assert "--certificate and --key together" in capsys.readouterr().err
        monkeypatch.setenv("PROCTOR_GATEWAY", server)
        monkeypatch.setenv("PROCTOR_GATEWAY_CA", str(authority.pem))
        monkeypatch.setenv("PROCTOR_GATEWAY_CERTIFICATE", str(pair.certificate))
        monkeypatch.setenv("PROCTOR_GATEWAY_KEY", str(pair.key))
        assert main(["audit", "list"]) == 0
    assert main(["audit", "list", "--server", "grpc://127.0.0.1:1"]) == 2
    assert "without TLS: use grpcs://" in capsys.readouterr().err


def test_tls_files_that_cannot_be_used_are_told_by_name(authority: Authority, tmp_path: Path) -> None:
    pair, other = authority.issue("one"), authority.issue("two")
    (tmp_path / "text.pem").write_text("no certificate")
    with (tmp_path / "huge.pem").open("wb") as stream:
        stream.truncate(MAX_PEM_BYTES + 1)
    for tls, message in [
        (ClientTls(tmp_path / "text.pem"), r"text\.pem holds no certificate of an authority"),
        (ClientTls(tmp_path / "huge.pem"), r"huge\.pem is larger than 1 MiB"),
        (ClientTls(tmp_path / "gone.pem"), r"gone\.pem cannot be read"),
        (ClientTls(None, pair.certificate, other.key), r"cannot be used .*belong together"),
        (ClientTls(None, pair.certificate, tmp_path / "text.pem"), r"cannot be used"),
    ]:
        with pytest.raises(BadInputError, match=message):
            tls.credentials()


async def _listen(running: Any, *arguments: Any, **options: Any) -> None:
    async with running(*arguments, **options):
        pass


@pytest.mark.parametrize("running", [gateway_running, perturbation_running])
def test_a_server_that_other_machines_reach_asks_who_calls(
    running: Any, bench: AuditBench, authority: Authority
) -> None:
    limits = Limits() if running is gateway_running else PerturbationLimits()
    anywhere = Address("0.0.0.0", 0)
    for tls in (None, Tls(*authority.issue("server"))):
        with pytest.raises(BadInputError, match=r"_TOKEN to what callers must show.*--client-ca"):
            asyncio.run(_listen(running, bench.desk, anywhere, limits=limits, tls=tls))


def test_a_server_whose_certificate_and_key_do_not_belong_together_does_not_start(
    bench: AuditBench, authority: Authority
) -> None:
    tls = Tls(authority.issue("one").certificate, authority.issue("two").key)
    with pytest.raises(BadInputError, match="belong together"):
        asyncio.run(_listen(gateway_running, bench.desk, Address("127.0.0.1", 0), limits=Limits(), tls=tls))


def test_a_call_with_more_metadata_than_a_header_holds_is_refused_and_the_next_is_not(
    bench: AuditBench, authority: Authority
) -> None:
    with listening(bench, Tls(*authority.issue("server"))) as server:
        credentials = ClientTls(authority.pem).credentials()
        with grpc.secure_channel(server.removeprefix("grpcs://"), credentials) as channel:
            call = channel.unary_unary("/proctor.v1.AuditService/List")
            with pytest.raises(grpc.RpcError) as refused:
                call(b"", metadata=[(f"x-{n}", "y" * 2_000) for n in range(8)], timeout=20)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert call(b"", timeout=20) == b""
