"""The life of the perturbation service's process: how it starts, ends, refuses to start, and whom it lets in."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path

import grpc

from proctor.perturbation.serving.rpc import perturbation_pb2_grpc
from proctor.runtime.packaged_encoder import packaged_folder
from tests.certificates import self_signed
from tests.perturbation_server import SHUFFLE, Gate, code_of, health, item, serving, settings
from tests.support import missing, wait_until


def test_a_missing_encoder_is_a_failed_precondition_with_the_mend(tmp_path: Path) -> None:
    with serving(tmp_path, PROCTOR_ENCODER=str(tmp_path / "nowhere")) as running, running.channel() as channel:
        code, details = code_of(lambda: running.perturb([settings(**SHUFFLE), item("a", "Q?")]))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "neither a folder nor a hub id with a pinned commit" in details
        assert "unset it for the packaged encoder" in details
        assert (health(channel), health(channel, "")) == ("NOT_SERVING", "SERVING")


def test_sigterm_lets_an_open_stream_end_and_leaves_in_order(tmp_path: Path) -> None:
    if packaged_folder() is None:
        missing("the package with the encoder's weights is not installed")
    gate = Gate()
    with serving(tmp_path, "--grace", "30") as running, running.channel() as channel:
        call = perturbation_pb2_grpc.PerturbationStub(channel).Perturb(
            chain([settings(**SHUFFLE), item("a", "Q?")], gate), timeout=50
        )
        next(call)
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in running.log.read_text(), what="the server's farewell")
        gate.open()
        assert [reply.summary.items for reply in call] == [1]
        assert running.process.communicate(timeout=30)[0] == b""
        assert running.process.returncode == 0


def test_sigterm_cancels_what_outlives_the_grace(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    gate = Gate()
    with serving(tmp_path, "--grace", "0", PROCTOR_ENCODER=nowhere) as running, running.channel() as channel:
        call = perturbation_pb2_grpc.PerturbationStub(channel).Perturb(iter(gate), timeout=50)
        assert health(channel, "") == "SERVING"
        running.process.send_signal(signal.SIGTERM)
        assert code_of(lambda: list(call))[0] in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        assert running.process.wait(timeout=30) == 0
        gate.open()


def test_a_port_that_is_taken_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = _command(tmp_path, "--listen", address)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"the server cannot listen on {address}" in done.stderr


def test_tls_takes_certificate_and_key_together(tmp_path: Path) -> None:
    done = _command(tmp_path, "--tls-cert", "here.pem")
    assert (done.returncode, done.stdout) == (2, "")
    assert "TLS needs --tls-cert and --tls-key together" in done.stderr


def _command(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", "perturbation", "serve", *options],
        env={**os.environ, "PROCTOR_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_with_a_client_authority_only_its_clients_are_let_in(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    files = ("--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(certificate))
    pem, secret = certificate.read_bytes(), key.read_bytes()
    with serving(tmp_path / "home", *files, PROCTOR_ENCODER=str(tmp_path / "nowhere")) as running:
        target = running.address.replace("127.0.0.1", "localhost")
        assert "(TLS)" in running.log.read_text()
        known = grpc.ssl_channel_credentials(pem, secret, pem)
        with grpc.secure_channel(target, known) as channel:
            assert health(channel, "") == "SERVING"
        with grpc.secure_channel(target, grpc.ssl_channel_credentials(pem)) as channel:
            assert code_of(lambda: health(channel, ""))[0] is grpc.StatusCode.UNAVAILABLE
        with running.channel() as channel:
            assert code_of(lambda: health(channel, ""))[0] is grpc.StatusCode.UNAVAILABLE
