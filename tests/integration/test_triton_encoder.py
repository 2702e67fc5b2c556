"""The sentence encoder on a real Triton server, beside the same encoder in process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from proctor.domain.errors import EncoderError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.encoder import Encoder, ResolvedEncoder, distances, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.wordings import Wordings, WordingsData
from proctor.perturbation.triton_embedding.client import TritonEncoder
from proctor.perturbation.triton_embedding.contract import MAX_TEXT_BYTES
from proctor.perturbation.triton_embedding.repository import write_embedding_model
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST, PACKAGED_NAME, packaged_folder
from proctor.runtime.records.store import Records
from tests.support import REPOSITORY, missing
from tests.triton_server import RunningTriton, start_and_wait_for_the_end, triton_server

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

SHIPPED = REPOSITORY / "services/triton/embedding"
#: Distances are kept with 4 digits, so the same one may be rounded up here and down there.
KEPT = 1e-4
TEMPLATES = (
    "What is the capital of {entity}?",
    "Name the city that serves as {entity}'s capital.",
    "Which city would an atlas mark as the capital of {entity}?",
    "A tourist wants to see the capital of {entity}; which city should she visit?",
)
CHAIN = Chain([Wordings(WordingsData("1.0.0", "sha256:test", {"capital": TEMPLATES})), OptionShuffle()])
SECTION = PerturbationSection(
    perturbation_strategy="wordings+option_shuffle", min_semantic_distance=0.02, max_semantic_distance=0.6
)
ITEMS = [
    Item(
        item_id=f"capital-{number}",
        question=TEMPLATES[number % len(TEMPLATES)].format(entity=entity),
        choices=("Bri", "Tor", "Ela", "Wen", "Zuf"),
        target="Ela",
        dimension="capital",
        metadata={"entity": entity},
    )
    for number, entity in enumerate(("Krav", "Dulo", "Sentz", "Mavo", "Ilba", "Quorn"))
]
ODD = ["", " ", "\u202eabc", "!?", "\U0001f600" * 100, "a" * 5_000, "\u6771\u4eac" * 100, "\x00\x1b[2J"]


@pytest.fixture(scope="module")
def in_process() -> ResolvedEncoder:
    try:
        return resolve_encoder(None)
    except EncoderError as error:
        missing(str(error))


@pytest.fixture(scope="module")
def server(in_process: ResolvedEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTriton]:
    with triton_server(SHIPPED, tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture
def served(server: RunningTriton) -> Iterator[TritonEncoder]:
    encoder = TritonEncoder(url(server))
    yield encoder
    encoder.close()


def url(server: RunningTriton, name: str = PACKAGED_NAME) -> str:
    return f"grpc://127.0.0.1:{server.grpc_port}/{name}"


def records(folder: Path) -> VariantLibrary:
    return VariantLibrary(Records(f"sqlite:///{folder / 'records.sqlite'}"))


def words(count: int) -> str:
    return " ".join(f"{('apples', 'pears', 'plums')[number % 3]} {number}" for number in range(count))


def raw(server: RunningTriton, texts: Sequence[bytes]) -> Any:
    """Send one request as any client could."""
    request = service_pb2.ModelInferRequest(model_name=PACKAGED_NAME)
    request.inputs.add(name="TEXT", datatype="BYTES", shape=[len(texts), 1])
    request.raw_input_contents.append(b"".join(len(text).to_bytes(4, "little") + text for text in texts))
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        return service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=30)


def test_it_is_the_same_encoder_as_in_process(served: TritonEncoder, in_process: ResolvedEncoder) -> None:
    assert (served.name, served.digest, served.fingerprint) == (
        in_process.name,
        in_process.digest,
        in_process.fingerprint,
    )
    assert served.digest == PACKAGED_DIGEST


def test_its_vectors_are_those_of_the_encoder_in_process(served: TritonEncoder, in_process: ResolvedEncoder) -> None:
    texts = [item.question for item in ITEMS] + ODD
    ours, theirs = in_process.encode(texts), served.encode(texts)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-5)
    # Not because all vectors are alike.
    assert distances(theirs[:1], theirs[6:7])[0] > 0.1


def test_a_long_text_is_the_mean_over_its_windows_as_in_process(
    served: TritonEncoder, in_process: ResolvedEncoder
) -> None:
    texts = [words(300), words(300) + " and one duck", words(60)]
    theirs = served.encode(texts)
    np.testing.assert_allclose(theirs, in_process.encode(texts), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(theirs, axis=1), 1.0, atol=1e-5)
    assert distances(theirs[:1], theirs[1:2])[0] > 0, "what stands past the first window counts"


def test_workers_that_ask_at_the_same_time_each_get_their_own_vectors(
    server: RunningTriton, in_process: ResolvedEncoder
) -> None:
    asked = [[f"worker {worker} asks for text {number}" for number in range(5 + worker)] for worker in range(4)]

    def ask(texts: list[str]) -> Any:
        encoder = TritonEncoder(url(server))
        try:
            return encoder.encode(texts)
        finally:
            encoder.close()

    with ThreadPoolExecutor(len(asked)) as pool:
        got = list(pool.map(ask, asked))
    ours = np.split(
        in_process.encode([text for texts in asked for text in texts]), np.cumsum([len(texts) for texts in asked])[:-1]
    )
    for vectors, expected in zip(got, ours, strict=True):
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def test_it_admits_the_variants_that_the_encoder_in_process_admits(
    served: TritonEncoder, in_process: ResolvedEncoder, tmp_path: Path
) -> None:
    def admitted(encoder: Encoder, name: str) -> tuple[list[str], list[float]]:
        (tmp_path / name).mkdir()
        made = build(ITEMS, SECTION, chain=CHAIN, encoder=encoder, library=records(tmp_path / name))
        assert made.encoder == f"{PACKAGED_NAME}@{PACKAGED_DIGEST}"
        kept = [variant.measurements.semantic_distance for variant in made.variants]
        return [variant.variant_id for variant in made.variants], kept

    (ours, our_distances), (theirs, their_distances) = admitted(in_process, "ours"), admitted(served, "theirs")
    assert len(ours) >= len(ITEMS)
    assert theirs == ours
    np.testing.assert_allclose(their_distances, our_distances, rtol=0, atol=1.5 * KEPT)


def test_what_the_encoder_in_process_put_into_the_library_is_taken_from_it(
    served: TritonEncoder, in_process: ResolvedEncoder, tmp_path: Path
) -> None:
    library = records(tmp_path)
    made = build(ITEMS, SECTION, chain=CHAIN, encoder=in_process, library=library)
    again = build(ITEMS, SECTION, chain=CHAIN, encoder=served, library=library)
    assert again.variants == made.variants
    assert again.from_library == len(made.variants)
    assert not served.loaded


def test_a_model_that_the_server_does_not_have_is_named(server: RunningTriton) -> None:
    with pytest.raises(EncoderError, match="the server has no model 'other'"):
        TritonEncoder(url(server, "other"))


def test_other_weights_than_the_pinned_ones_are_refused(server: RunningTriton) -> None:
    TritonEncoder(f"{url(server)}@{PACKAGED_DIGEST}").close()
    with pytest.raises(EncoderError, match="PROCTOR_ENCODER pins sha256:0000"):
        TritonEncoder(f"{url(server)}@sha256:{'0' * 64}")


@pytest.mark.parametrize(
    ("texts", "said"),
    [([b"fine", b"\xff\xfe"], "TEXT is not UTF-8"), ([b"x" * (MAX_TEXT_BYTES + 1)], "the limit is 1,048,576")],
)
def test_a_bad_request_is_refused_and_the_model_lives_on(
    server: RunningTriton, served: TritonEncoder, texts: list[bytes], said: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        raw(server, texts)
    assert said in str(caught.value)
    assert served.encode(["a"]).shape == (1, 384)


def test_a_server_that_dies_is_an_error_of_the_encoder(in_process: ResolvedEncoder, tmp_path: Path) -> None:
    # Laid down as an operator does it for an encoder of their own, with its files.
    name = write_embedding_model(tmp_path, str(packaged_folder()), name="own")
    with triton_server(tmp_path, tmp_path / "runtime") as running:
        encoder = TritonEncoder(url(running, name), reconnect_s=0.5)
        vectors = encoder.encode([words(3)])
        running.process.kill()
        running.process.wait()
        with pytest.raises(EncoderError, match=f"no encoder at {url(running, name)}"):
            encoder.encode([words(3)])
        encoder.close()
    np.testing.assert_allclose(vectors, in_process.encode([words(3)]), rtol=0, atol=1e-5)


def test_a_model_that_is_not_the_stated_encoder_is_not_served(in_process: ResolvedEncoder, tmp_path: Path) -> None:
    source, model = SHIPPED / "models" / PACKAGED_NAME, tmp_path / "models" / PACKAGED_NAME
    (model / "1").mkdir(parents=True)
    (model / "1/model.py").write_bytes((source / "1/model.py").read_bytes())
    config = (source / "config.pbtxt").read_text("utf-8")
    (model / "config.pbtxt").write_text(config.replace(in_process.fingerprint, "sha256:" + "1" * 64), "utf-8")
    status, log = start_and_wait_for_the_end(tmp_path, tmp_path / "runtime")
    assert status != 0
    assert "lay the model down again" in log
