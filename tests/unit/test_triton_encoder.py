"""The client of an encoder on Triton, against a gRPC server of the same protocol that misbehaves on purpose."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder import resolve_encoder
from proctor.perturbation.triton_embedding.client import TritonEncoder
from proctor.perturbation.triton_embedding.contract import MAX_TEXT_BYTES
from proctor.perturbation.triton_embedding.wire import batches
from proctor.runtime.settings import EncoderPrecision
from tests.embedding_server import (
    DIGEST,
    DIMENSION,
    FINGERPRINT,
    MODEL,
    EmbeddingServer,
    response,
    right,
    serving,
    texts_of,
    vector,
)
from tests.support import free_port


@contextmanager
def connected(server: EmbeddingServer, *, pin: str = "", **options: float) -> Iterator[TritonEncoder]:
    """An encoder on that server."""
    with serving(server) as port:
        encoder = TritonEncoder(f"grpc://127.0.0.1:{port}/{MODEL}{pin}", **options)
        try:
            yield encoder
        finally:
            encoder.close()


def complaint(server: EmbeddingServer, *, pin: str = "", **options: float) -> str:
    """What is said when texts cannot be embedded there."""
    with pytest.raises(EncoderError) as caught, connected(server, pin=pin, **options) as encoder:
        encoder.encode(["a", "b"])
    return str(caught.value)


def test_each_text_gets_its_own_vector_in_batches_that_the_model_takes() -> None:
    server = EmbeddingServer(max_batch_size=3)
    texts = ["a", "", "é漢🙂\x00", "a", "d", "e", "f"]
    with connected(server) as encoder:
        vectors = encoder.encode(texts)
    np.testing.assert_array_equal(vectors, np.stack([vector(text) for text in texts]))
    assert vectors.dtype == np.float32
    assert server.asked == [texts[:3], texts[3:6], texts[6:]]


def test_the_encoder_is_what_the_server_says_it_is() -> None:
    with connected(EmbeddingServer()) as encoder:
        assert (encoder.name, encoder.digest, encoder.fingerprint) == ("tiny-encoder", DIGEST, FINGERPRINT)


def test_it_counts_as_loaded_once_it_was_asked_to_embed() -> None:
    with connected(EmbeddingServer()) as encoder:
        assert not encoder.loaded
        encoder.encode(["a"])
        assert encoder.loaded


def test_no_texts_ask_nothing() -> None:
    server = EmbeddingServer()
    with connected(server) as encoder:
        assert encoder.encode([]).shape == (0, 0)
        assert not encoder.loaded
    assert not server.asked


@given(st.lists(st.binary(max_size=90_000), max_size=20), st.integers(1, 5))
def test_batches_keep_every_text_in_order_and_bound_their_number_and_size(tensors: list[bytes], most: int) -> None:
    made = list(batches(tensors, most))
    assert [tensor for batch in made for tensor in batch] == tensors
    assert all(0 < len(batch) <= most for batch in made)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= 1 << 18 for batch in made)


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("grpc://", "which is not like grpc://host:8001/model-name"),
        ("grpc://host:port/model", "which is not like"),
        ("grpc://host:99999/model", "which is not like"),
        ("grpc://host/model?x=1", "which is not like"),
        ("grpc:host/model", "which is not like"),
        ("grpc://host", "must name one model"),
        ("grpc://host/", "must name one model"),
        ("grpc://host/models/tiny", "must name one model"),
        ("grpc://host/tiny@sha256:abc", "pins 'sha256:abc', which is not sha256: and 12 to 64 hex digits"),
        ("grpc://host/tiny@main", "pins 'main'"),
        ("grpc://host/tiny@", "pins ''"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused_with_an_example(setting: str, fault: str) -> None:
    with pytest.raises(EncoderError) as caught:
        resolve_encoder(setting)
    assert fault in str(caught.value)


def test_the_settings_resolve_to_it_whatever_the_precision() -> None:
    with serving(EmbeddingServer()) as port:
        for precision in EncoderPrecision:
            encoder = resolve_encoder(f"grpc://127.0.0.1:{port}/{MODEL}", precision)
            assert isinstance(encoder, TritonEncoder)
            assert encoder.fingerprint == FINGERPRINT
            encoder.close()


def test_nobody_at_the_address_is_said_at_once() -> None:
    port = free_port()
    with pytest.raises(EncoderError, match=f"no encoder at grpc://127.0.0.1:{port}/tiny: connection refused; is"):
        TritonEncoder(f"grpc://127.0.0.1:{port}/tiny", reconnect_s=1e6)


def test_a_model_that_the_server_does_not_have_is_named() -> None:
    with serving(EmbeddingServer()) as port, pytest.raises(EncoderError, match="the server has no model 'other'"):
        TritonEncoder(f"grpc://127.0.0.1:{port}/other")


def test_a_missing_client_library_is_named_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tritonclient.grpc", None)
    with pytest.raises(EncoderError, match=r"pip install 'proctor\[triton\]'"):
        TritonEncoder("grpc://127.0.0.1/tiny")


@pytest.mark.parametrize(
    ("stated", "fault"),
    [
        ({"tensors": ("text_input", "text_output")}, "is another kind of model (text_input → text_output)"),
        ({"tensors": ("TEXT", "text_output")}, "is another kind of model"),
        ({"digest": ""}, "does not state model_digest"),
        ({"digest": "sha256:ab"}, "does not state model_digest"),
        ({"fingerprint": ""}, "does not state encoder_fingerprint"),
        ({"name": "\x1b "}, "does not state encoder_name"),
        ({"max_batch_size": 0}, "does not state max_batch_size"),
        ({"dimensions": (-1,)}, "does not state the dimension of EMBEDDING"),
        ({"dimensions": (2, 4)}, "does not state the dimension of EMBEDDING"),
    ],
)
def test_a_model_that_does_not_say_which_encoder_it_is_is_refused(stated: dict[str, Any], fault: str) -> None:
    server = EmbeddingServer(**stated)
    assert fault in complaint(server)
    assert not server.asked


def test_the_pinned_weights_are_used_and_others_refused() -> None:
    with connected(EmbeddingServer(), pin=f"@{DIGEST[:19]}") as encoder:
        assert encoder.digest == DIGEST
    said = complaint(EmbeddingServer(), pin="@sha256:" + "0" * 64)
    assert f"serves weights with the digest {DIGEST}, PROCTOR_ENCODER pins sha256:0000" in said


def not_finite(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(np.full((len(texts_of(request)), DIMENSION), np.nan))


def too_wide(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(np.eye(len(texts_of(request)), DIMENSION + 1))


def too_few(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(np.eye(1, DIMENSION))


def too_long(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(2 * np.eye(len(texts_of(request)), DIMENSION))


def other_tensor(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(np.eye(len(texts_of(request)), DIMENSION), name="logits")


def other_type(server: EmbeddingServer, request: Any, context: Any) -> Any:
    return response(np.eye(len(texts_of(request)), DIMENSION), datatype="FP16")


def cut_short(server: EmbeddingServer, request: Any, context: Any) -> Any:
    answer = right(server, request, context)
    answer.raw_output_contents[0] = answer.raw_output_contents[0][:-4]
    return answer


def empty(server: EmbeddingServer, request: Any, context: Any) -> Any:
    answer = right(server, request, context)
    del answer.raw_output_contents[:]
    return answer


def broken(server: EmbeddingServer, request: Any, context: Any) -> Any:
    context.abort(grpc.StatusCode.INTERNAL, "Stub process is\nnot healthy\x1b[2J")


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (not_finite, "not finite"),
        (too_wide, "vectors of shape [2, 5] (40 bytes), but 2 texts and the declared dimension make [2, 4]"),
        (too_few, "vectors of shape [1, 4]"),
        (too_long, "not of length 1"),
        (other_tensor, "without the FP32 tensor EMBEDDING"),
        (other_type, "without the FP32 tensor EMBEDDING"),
        (cut_short, "(28 bytes)"),
        (empty, "without the FP32 tensor EMBEDDING"),
        (broken, "answered INTERNAL: Stub process is not healthy [2J"),
    ],
)
def test_an_answer_that_is_no_embedding_is_one_clear_error(answer: Any, fault: str) -> None:
    server = EmbeddingServer(answer)
    assert fault in complaint(server)
    assert len(server.asked) == 1, "only a lost connection is asked again"


def test_a_text_whose_windows_cancel_out_keeps_its_empty_vector() -> None:
    with connected(EmbeddingServer(lambda *_: response(np.zeros((1, DIMENSION))))) as encoder:
        assert not encoder.encode(["a"]).any()


def test_a_server_that_hangs_is_given_up_at_the_deadline() -> None:
    released = threading.Event()

    def hang(server: EmbeddingServer, request: Any, context: Any) -> Any:
        released.wait(20)
        return right(server, request, context)

    with connected(EmbeddingServer(hang), deadline_s=0.2) as encoder:
        with pytest.raises(EncoderError, match=r"did not answer within 0\.2 s"):
            encoder.encode(["a"])
        released.set()


def test_what_a_lost_connection_took_is_asked_once_more() -> None:
    def once_lost(server: EmbeddingServer, request: Any, context: Any) -> Any:
        if len(server.asked) == 2:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        return right(server, request, context)

    server = EmbeddingServer(once_lost, max_batch_size=1)
    with connected(server) as encoder:
        vectors = encoder.encode(["a", "b"])
    np.testing.assert_array_equal(vectors, np.stack([vector("a"), vector("b")]))
    assert server.asked == [["a"], ["b"], ["b"]]


def test_a_connection_that_is_lost_again_is_an_error() -> None:
    def lost(server: EmbeddingServer, request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    server = EmbeddingServer(lost)
    assert "no encoder at grpc://" in complaint(server)
    assert len(server.asked) == 2


def test_a_server_that_went_away_is_waited_for_and_then_an_error() -> None:
    with ExitStack() as stack:
        port = stack.enter_context(serving(EmbeddingServer()))
        encoder = TritonEncoder(f"grpc://127.0.0.1:{port}/{MODEL}", reconnect_s=0.3)
        encoder.encode(["a"])
        stack.close()
        with pytest.raises(EncoderError, match="no encoder at"):
            encoder.encode(["a"])
        encoder.close()


def test_a_server_that_comes_back_answers_what_was_asked_in_between() -> None:
    with ExitStack() as stack:
        port = stack.enter_context(serving(EmbeddingServer()))
        encoder = TritonEncoder(f"grpc://127.0.0.1:{port}/{MODEL}", reconnect_s=20)
        encoder.encode(["a"])
        stack.close()
        with ExitStack() as again:
            returning = threading.Timer(0.3, lambda: again.enter_context(serving(EmbeddingServer(), port)))
            returning.start()
            np.testing.assert_array_equal(encoder.encode(["b"])[0], vector("b"))
            returning.join()
        encoder.close()


def test_vectors_of_a_server_that_changed_its_encoder_are_not_given() -> None:
    def change(server: EmbeddingServer, request: Any, context: Any) -> Any:
        server.fingerprint = DIGEST
        return right(server, request, context)

    assert "vectors of two encoders cannot be compared" in complaint(EmbeddingServer(change))


def test_texts_that_cannot_travel_are_named_by_place_and_not_sent() -> None:
    server = EmbeddingServer()
    with connected(server) as encoder:
        with pytest.raises(EncoderError, match="text 2 has 1,048,577 bytes, the limit is 1,048,576"):
            encoder.encode(["a", "x" * (MAX_TEXT_BYTES + 1)])
        with pytest.raises(EncoderError, match="text 1 holds half of a surrogate pair at character 2"):
            encoder.encode(["ab\ud83d"])
        assert len(encoder.encode(["x" * MAX_TEXT_BYTES])) == 1
    assert len(server.asked) == 1


def test_an_encoder_on_triton_loads_no_torch() -> None:
    program = """
import sys
from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder import resolve_encoder
try:
    resolve_encoder("grpc://127.0.0.1:1/tiny")
except EncoderError:
    print(sorted({"torch", "transformers", "sentence_transformers"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
