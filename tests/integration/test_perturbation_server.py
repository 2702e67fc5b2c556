"""The gRPC perturbation service: the real command in a process of its own, the real encoder, a client over a socket."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from proctor.domain.errors import EncoderError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.encoder import SentenceEncoder, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.recipe import Recipe
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.rpc import perturbation_pb2_grpc
from proctor.runtime.records import Records
from tests.support import missing, wait_until

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

SERVICE = "proctor.v1.Perturbation"
#: Any window and surface: these tests are about the stream.
OPEN = {"min_semantic_distance": 0.0, "max_semantic_distance": 2.0, "max_token_overlap": 1.0}
SHUFFLE = {"perturbation_strategy": "option_shuffle", "num_variants_per_item": 1, **OPEN}
#: Rewords the question as well, so that it has to be embedded.
NUMBERS = {**SHUFFLE, "perturbation_strategy": "number_words+option_shuffle"}
MIB = 1 << 20


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    address: str
    home: Path
    log: Path

    @contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        with grpc.insecure_channel(self.address) as channel:
            yield channel

    def perturb(self, messages: Iterable[pb.PerturbRequest]) -> list[pb.PerturbReply]:
        with self.channel() as channel:
            return list(perturbation_pb2_grpc.PerturbationStub(channel).Perturb(iter(messages), timeout=50))

    def resident_bytes(self) -> int:
        """The process's resident memory; the field after the whole address space's."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def library_rows(self) -> int:
        with closing(sqlite3.connect(self.home / "records.sqlite", timeout=20)) as connection:
            count: int = connection.execute("SELECT count(*) FROM variant_library").fetchone()[0]
            return count


@contextmanager
def serving(home: Path, *options: str, **environment: str) -> Iterator[Server]:
    """Start `proctor perturbation serve` and yield it once it listens."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    command = [sys.executable, "-m", "proctor", "perturbation", "serve", "--listen", "127.0.0.1:0", *options]
    # One thread: those of several wait for each other, ten times as long where other tests share the cores.
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PROCTOR_HOME": str(home), **environment}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=variables)
    try:
        wait_until(lambda: "listens on" in log.read_text() or process.poll() is not None, what="the server's address")
        found = re.search(r"listens on (\S+)", log.read_text())
        assert found is not None, log.read_text()
        yield Server(process, found[1], home, log)
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def minilm() -> SentenceEncoder:
    try:
        encoder = resolve_encoder(None)
        encoder.encode(["warm up"])
    except EncoderError as error:
        missing(str(error))
    return encoder


@pytest.fixture(scope="module")
def server(minilm: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("perturbation"), "--max-streams", "4") as running:
        yield running


def settings(**config: Any) -> pb.PerturbRequest:
    return pb.PerturbRequest(settings=pb.StreamSettings(perturbation_config=pb.PerturbationConfig(**config)))


def item(item_id: str, question: str, *, choices: Iterable[str] = ("3", "4", "5"), **more: Any) -> pb.PerturbRequest:
    return pb.PerturbRequest(
        item=pb.Item(item_id=item_id, question=question, choices=choices, **{"target": "4", **more})
    )


def items(name: str, count: int) -> Iterator[pb.PerturbRequest]:
    """Different items in two wordings, so that a batch has few texts to embed."""
    for n in range(count):
        yield item(
            f"{name}-{n}", f"Which of these is the answer of kind {n % 2 + 2}?", choices=(f"{name} {n}", "4", "5")
        )


def texts(name: str, count: int) -> Iterator[pb.PerturbRequest]:
    """Items that ask something different each: about a second of embedding a batch."""
    for n in range(count):
        port = "".join(chr(ord("a") + int(digit)) for digit in str(n))
        question = f"There are {n % 90 + 2} ships in {name} {port}. Which ship carries more amber? " + "Say it. " * 20
        yield item(f"{name}-{n}", question)


def _code(action: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as raised:
        action()
    return raised.value.code(), raised.value.details()


def test_ten_thousand_items_pass_in_order_with_flat_memory(server: Server) -> None:
    resident, place, summary = {}, 0, None
    with server.channel() as channel:
        replies = perturbation_pb2_grpc.PerturbationStub(channel).Perturb(
            chain([settings(**NUMBERS)], items("flat", 10_000)), timeout=55
        )
        for reply in replies:
            if reply.WhichOneof("content") == "summary":
                summary = reply.summary
                continue
            assert (reply.item.index, reply.item.item_id) == (place, f"flat-{place}")
            assert len(reply.item.variants) == 1
            place += 1
            if place in (1_000, 10_000):
                resident[place] = server.resident_bytes()
    assert summary is not None
    assert (summary.items, summary.variants, summary.yield_reached) == (10_000, 10_000, True)
    assert resident[10_000] - resident[1_000] < 50 * MIB


def test_the_service_makes_what_a_build_makes(server: Server, minilm: SentenceEncoder, tmp_path: Path) -> None:
    config = {"perturbation_strategy": "number_words+option_shuffle", "num_variants_per_item": 2, "seed": 5, **OPEN}
    section = PerturbationSection(**config)
    asked = [
        Item(item_id=f"i{n}", question=f"Tom has {n % 4 + 2} coins, 5 in gold.", choices=(f"{n} x", "4"), target="4")
        for n in range(70)
    ]
    made = build(
        asked,
        section,
        chain=Recipe(section, benchmark="", bundle=tmp_path).chain({}),
        encoder=minilm,
        library=VariantLibrary(Records(f"sqlite:///{tmp_path / 'records.sqlite'}")),
    )
    stream = [settings(**config), *(item(one.item_id, one.question, choices=one.choices) for one in asked)]
    first, again = server.perturb(stream), server.perturb(stream)
    sent = [(reply.item.item_id, variant) for reply in first[:-1] for variant in reply.item.variants]
    assert [(item_id, variant.variant_id, variant.question) for item_id, variant in sent] == [
        (variant.item_id, variant.variant_id, variant.question) for variant in made.variants
    ]
    assert [variant.measurements.semantic_distance for _, variant in sent] == pytest.approx(
        [variant.measurements.semantic_distance for variant in made.variants], abs=1e-4
    )
    assert first[-1].summary.encoder == made.encoder
    assert [reply.item.variants for reply in again] == [reply.item.variants for reply in first]
    assert (first[-1].summary.items_from_library, again[-1].summary.items_from_library) == (0, 70)


def test_bad_items_are_counted_and_the_stream_goes_on(server: Server) -> None:
    surrogate = item("surrogate", "XYZ?").SerializeToString().replace(b"XYZ", "\ud800".encode("utf-8", "surrogatepass"))
    stream: list[pb.PerturbRequest | bytes] = [
        settings(**SHUFFLE),
        item("empty", ""),
        item("gigantic", "long " * 50_000),
        surrogate,
        b"\xff\xff\xff",
        pb.PerturbRequest(),
        item("no target", "What are 2 and 2?", target="7"),
        item("right to left", "\u05db\u05de\u05d4 \u05d6\u05d4 2 \u05d5\u05e2\u05d5\u05d3 2?"),
        item("no letters", "2 + 2 = ?"),
        item("no options", "What are 2 and 2?", choices=()),
        item("fine", "What are 2 and 2?"),
    ]
    with server.channel() as channel:
        call = channel.stream_stream(
            f"/{SERVICE}/Perturb",
            request_serializer=lambda one: one if isinstance(one, bytes) else one.SerializeToString(),
            response_deserializer=pb.PerturbReply.FromString,
        )
        *replies, last = call(iter(stream), timeout=50)
    assert [reply.item.index for reply in replies] == list(range(10))
    assert [(reply.item.item_id, [one.reason for one in reply.item.rejections]) for reply in replies] == [
        ("empty", ["empty"]),
        ("gigantic", ["too_long"]),
        ("", ["not_readable"]),
        ("", ["not_readable"]),
        ("", ["empty"]),
        ("no target", ["bad_item"]),
        ("right to left", []),
        ("no letters", []),
        ("no options", ["no_options"]),
        ("fine", []),
    ]
    assert dict(last.summary.rejections_by_reason) == {
        "empty": 2, "too_long": 1, "not_readable": 2, "bad_item": 1, "no_options": 1
    }  # fmt: skip
    assert not last.summary.yield_reached
    assert last.summary.conclusion.startswith("3 of 10 items got a variant")


def test_ready_rewordings_travel_with_their_items_even_under_one_name(server: Server) -> None:
    config = {"perturbation_strategy": "imported", **OPEN}
    wordings = ("What do 2 and 2 make?", "Two and two are how many?")
    stream = [
        item("same", "What are 2 and 2?", choices=(), rewordings=[pb.Wording(question=text)]) for text in wordings
    ]
    *replies, last = server.perturb([settings(**config), *stream, item("none", "What are 2 and 2?", choices=())])
    assert [[variant.question for variant in reply.item.variants] for reply in replies] == [
        [wordings[0]], [wordings[1]], []
    ]  # fmt: skip
    assert dict(last.summary.rejections_by_reason) == {"no_rewording": 1}


def _measure(server: Server, *messages: pb.MeasureRequest) -> list[pb.Measurement]:
    with server.channel() as channel:
        return list(perturbation_pb2_grpc.PerturbationStub(channel).Measure(iter(messages), timeout=50))


def _pair(question: str, rewording: str, **more: Any) -> pb.Pair:
    return pb.Pair(
        original=pb.Item(item_id="m", question=question, target="4", **more), rewording=pb.Wording(question=rewording)
    )


def test_pairs_are_measured_whatever_the_gate_says_of_them(server: Server) -> None:
    question = "Tom has 2 coins. He finds 2 more. How many coins has Tom?"
    pairs = [
        (question, question),
        (question, "Tom owns 2 coins and then finds another 2. What is the number of his coins?"),
        (question, "Tom has 3 coins. He finds 2 more. How many coins has Tom?"),
        (question, ""),
        ("", question),
    ]
    window = {"min_semantic_distance": 0.001, "max_semantic_distance": 0.9}
    first = pb.MeasureRequest(settings=settings(**window).settings)
    replies = _measure(server, first, *(pb.MeasureRequest(pair=_pair(*pair)) for pair in pairs))
    assert [reply.index for reply in replies] == list(range(5))
    assert [reply.admitted for reply in replies] == [False, True, False, False, False]
    assert [reply.rejection.reason for reply in replies] == ["unchanged", "", "numerals", "empty", "empty"]
    assert [list(reply.broken_invariants) for reply in replies] == [[], [], ["numerals"], [], []]
    assert [reply.HasField("measurements") for reply in replies] == [True, True, True, False, False]
    assert replies[0].measurements.semantic_distance == 0.0
    assert replies[2].measurements.semantic_distance > 0.0


def test_a_prompt_beyond_the_encoder_s_window_is_measured_to_its_end(server: Server) -> None:
    head = " ".join(f"The {n} ships carry amber to the harbour." for n in range(100))
    reply = _measure(
        server,
        pb.MeasureRequest(settings=settings(**OPEN).settings),
        pb.MeasureRequest(pair=_pair(f"{head} How many?", f"{head} How many? The dragon burnt the library.")),
    )[0]
    assert reply.measurements.semantic_distance > 0.001


def _labelled(count: int) -> Iterator[pb.CalibrateRequest]:
    for n in range(count):
        asks = f"Tom has {n} coins and finds 2 more. How many coins has he?"
        says = f"If someone with {n} coins finds another 2, how many coins has he? His name is Tom."
        other = f"A ship with {n} sails loses 2 of them in a storm off the cape of amber. How many are left?"
        for text, label in (
            (says, pb.LabelledPair.LABEL_EQUIVALENT),
            (other, pb.LabelledPair.LABEL_DIFFERENT),
        ):
            pair = _pair(asks, text)
            pair.original.item_id = f"c-{n}"
            yield pb.CalibrateRequest(pair=pb.LabelledPair(pair=pair, label=label))


def test_a_window_is_learned_from_labelled_pairs_and_used_by_a_stream(server: Server) -> None:
    begin = pb.CalibrateRequest(settings=pb.CalibrationSettings(benchmark="coins", true_admits=0.9, false_admits=0.1))
    nameless = pb.CalibrateRequest(pair=pb.LabelledPair(pair=_pair("What are 2 and 2?", "2 and 2 are?")))
    with server.channel() as channel:
        stub = perturbation_pb2_grpc.PerturbationStub(channel)
        learned = stub.Calibrate(chain([begin], _labelled(60), [nameless]), timeout=50)
    document = json.loads(learned.document)
    assert dict(learned.rejections_by_reason) == {"bad_item": 1}
    assert document["learned_from"]["equivalent"] + document["held_out"]["equivalent"] == 60
    assert 0 < document["max_semantic_distance"] < 2
    calibrated = settings(perturbation_strategy="option_shuffle", gate="calibrated", num_variants_per_item=1)
    calibrated.settings.calibration, calibrated.settings.benchmark = learned.document, "coins"
    assert server.perturb([calibrated, item("a", "What are 2 and 2?")])[-1].summary.variants == 1
    calibrated.settings.benchmark = "other"
    code, details = _code(lambda: server.perturb([calibrated]))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "was learned for the benchmark 'coins'" in details


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([], "settings are missing (the stream is empty)"),
        ([item("a", "Q?")], "settings are missing (the first message carries none)"),
        ([settings()], "'paraphrase_llm' is not in this version"),
        ([settings(perturbation_strategy="no_such")], "'no_such' does not exist; there are: "),
        ([settings(perturbation_strategy="typo", num_variants_per_item=0)], "num_variants_per_item: 0 is out of range"),
        ([settings(perturbation_strategy="wordings")], "and '' has none here"),
        ([settings(perturbation_strategy="typo", gate="calibrated")], "the settings carry no calibration"),
        ([settings(**SHUFFLE), settings(**SHUFFLE)], "the stream carries settings twice"),
    ],
)
def test_settings_that_cannot_be_used_are_one_invalid_argument(
    server: Server, stream: list[pb.PerturbRequest], message: str
) -> None:
    code, details = _code(lambda: server.perturb(stream))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message in details


def test_a_calibration_that_is_none_is_refused(server: Server) -> None:
    opening = settings(perturbation_strategy="typo", gate="calibrated")
    opening.settings.calibration = "{}"
    code, details = _code(lambda: server.perturb([opening]))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "is no calibration of the gate" in details


def test_a_message_past_the_limit_ends_its_stream_and_no_other(server: Server) -> None:
    code, details = _code(lambda: server.perturb([settings(**SHUFFLE), item("big", "x" * 2 * MIB)]))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"vs. {MIB}" in details
    assert server.perturb([settings(**SHUFFLE), item("a", "Q?")])[-1].summary.items == 1


def _steady(server: Server, name: str) -> int:
    """The library's rows after a stream of one new item, which is worked on after all that was to be before it."""
    server.perturb([settings(**SHUFFLE), item(name, f"{name}?")])
    return server.library_rows()


@pytest.mark.parametrize("end", ["cancelled", "past its deadline"])
def test_a_stream_that_ends_early_has_no_further_batch_made(server: Server, end: str) -> None:
    before, count = _steady(server, f"before {end}"), 3_000
    with server.channel() as channel:
        call = perturbation_pb2_grpc.PerturbationStub(channel).Perturb(
            chain([settings(**NUMBERS)], texts(end, count)), timeout=50 if end == "cancelled" else 1.5
        )
        if end == "cancelled":
            assert next(call).item.item_id == "cancelled-0"
            call.cancel()
            assert _code(lambda: list(call))[0] is grpc.StatusCode.CANCELLED
        else:
            assert _code(lambda: list(call))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    after = _steady(server, f"first after {end}")
    assert _steady(server, f"second after {end}") == after + 1
    assert after - before < count // 2


def test_streams_past_the_limit_are_refused_and_health_still_answers(server: Server) -> None:
    gates = [_Gate() for _ in range(4)]
    with server.channel() as channel:
        stub = perturbation_pb2_grpc.PerturbationStub(channel)
        held = [stub.Perturb(chain([settings(**SHUFFLE), item("a", "Q?")], gate), timeout=50) for gate in gates]
        for call in held:
            next(call)
        code, details = _code(lambda: server.perturb([settings(**SHUFFLE)]))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "4 streams are open, and no more are taken" in details
        assert _health(channel) == "SERVING"
        for gate in gates:
            gate.open()
        assert [list(call)[-1].summary.items for call in held] == [1, 1, 1, 1]
    assert server.perturb([settings(**SHUFFLE)])[-1].summary.conclusion == "The stream held no items."


class _Gate:
    """No message until it is opened, and then the end."""

    def __init__(self) -> None:
        self._opened = Event()

    def open(self) -> None:
        self._opened.set()

    def __iter__(self) -> Iterator[pb.PerturbRequest]:
        self._opened.wait(50)
        yield from ()


def _health(channel: grpc.Channel, service: str = SERVICE) -> str:
    reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))


def test_health_and_reflection_tell_what_is_served(server: Server) -> None:
    with server.channel() as channel:
        wait_until(lambda: _health(channel) == "SERVING", what="the loaded encoder")
        assert _health(channel, "") == "SERVING"
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        reply = next(stub.ServerReflectionInfo(iter([asked]), timeout=20))
        names = {service.name for service in reply.list_services_response.service}
    assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_every_method_of_the_contract_is_served(server: Server) -> None:
    methods = pb.DESCRIPTOR.services_by_name["Perturbation"].methods
    with server.channel() as channel:
        calls = [channel.stream_stream(f"/{SERVICE}/{method.name}")(iter([]), timeout=20) for method in methods]
        codes = [_code(lambda call=call: list(call))[0] for call in calls]
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT] * 3


def test_a_missing_encoder_is_a_failed_precondition_with_the_mend(tmp_path: Path) -> None:
    with serving(tmp_path, PROCTOR_ENCODER=str(tmp_path / "nowhere")) as running, running.channel() as channel:
        code, details = _code(lambda: running.perturb([settings(**SHUFFLE), item("a", "Q?")]))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "neither a folder nor a hub id with a pinned commit" in details
        assert "unset it for the packaged encoder" in details
        assert (_health(channel), _health(channel, "")) == ("NOT_SERVING", "SERVING")


def test_sigterm_lets_an_open_stream_end_and_leaves_in_order(minilm: SentenceEncoder, tmp_path: Path) -> None:
    gate = _Gate()
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
    gate = _Gate()
    with serving(tmp_path, "--grace", "0", PROCTOR_ENCODER=nowhere) as running, running.channel() as channel:
        call = perturbation_pb2_grpc.PerturbationStub(channel).Perturb(iter(gate), timeout=50)
        assert _health(channel, "") == "SERVING"
        running.process.send_signal(signal.SIGTERM)
        assert _code(lambda: list(call))[0] in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        assert running.process.wait(timeout=30) == 0
        gate.open()


def test_a_port_that_is_taken_is_one_line_and_exit_code_2(server: Server, tmp_path: Path) -> None:
    done = _command(tmp_path, "--listen", server.address)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"the server cannot listen on {server.address}" in done.stderr


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


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


def test_with_a_client_authority_only_its_clients_are_let_in(tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    files = ("--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(certificate))
    pem, secret = certificate.read_bytes(), key.read_bytes()
    with serving(tmp_path / "home", *files, PROCTOR_ENCODER=str(tmp_path / "nowhere")) as running:
        target = running.address.replace("127.0.0.1", "localhost")
        assert "(TLS)" in running.log.read_text()
        known = grpc.ssl_channel_credentials(pem, secret, pem)
        with grpc.secure_channel(target, known) as channel:
            assert _health(channel, "") == "SERVING"
        with grpc.secure_channel(target, grpc.ssl_channel_credentials(pem)) as channel:
            assert _code(lambda: _health(channel, ""))[0] is grpc.StatusCode.UNAVAILABLE
        with running.channel() as channel:
            assert _code(lambda: _health(channel, ""))[0] is grpc.StatusCode.UNAVAILABLE
