"""The gRPC perturbation service: the real command in a process of its own, the real encoder, a client over a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from proctor.domain.errors import EncoderError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.encoder import ResolvedEncoder, SentenceEncoder, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.recipe import Recipe
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.rpc import perturbation_pb2_grpc
from proctor.runtime.records.store import Records
from tests.perturbation_server import OPEN, SERVICE, SHUFFLE, Gate, Server, code_of, health, item, serving, settings
from tests.support import missing, wait_until

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

#: Rewords the question as well, so that it has to be embedded.
NUMBERS = {**SHUFFLE, "perturbation_strategy": "number_words+option_shuffle"}
MIB = 1 << 20


@pytest.fixture(scope="module")
def minilm() -> ResolvedEncoder:
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
    asked = item("a", "What are 2 and 2?")
    originals = dict.fromkeys(message.pair.pair.original.question for message in _labelled(60))
    questions = [pb.PerturbRequest(question=question) for question in originals]
    replies = server.perturb([calibrated, *questions, asked])
    assert len(replies) == 2
    assert replies[-1].summary.variants == 1
    for brought, why in (([], "their questions did not come"), (questions[1:], "a margin belongs to the questions")):
        code, details = code_of(partial(server.perturb, [calibrated, *brought, asked]))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert why in details
    calibrated.settings.benchmark = "other"
    code, details = code_of(lambda: server.perturb([calibrated]))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "was learned for the benchmark 'coins'" in details


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([], "settings are missing (the stream is empty)"),
        ([item("a", "Q?")], "settings are missing (the first message carries none)"),
        ([settings()], "'paraphrase_llm' asks a model, which is done by `proctor audit run`"),
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
    code, details = code_of(lambda: server.perturb(stream))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message in details


def test_a_calibration_that_is_none_is_refused(server: Server) -> None:
    opening = settings(perturbation_strategy="typo", gate="calibrated")
    opening.settings.calibration = "{}"
    code, details = code_of(lambda: server.perturb([opening]))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "is no calibration of the gate" in details


def test_a_message_past_the_limit_ends_its_stream_and_no_other(server: Server) -> None:
    code, details = code_of(lambda: server.perturb([settings(**SHUFFLE), item("big", "x" * 2 * MIB)]))
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
            assert code_of(lambda: list(call))[0] is grpc.StatusCode.CANCELLED
        else:
            assert code_of(lambda: list(call))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    after = _steady(server, f"first after {end}")
    assert _steady(server, f"second after {end}") == after + 1
    assert after - before < count // 2


def test_streams_past_the_limit_are_refused_and_health_still_answers(server: Server) -> None:
    gates = [Gate() for _ in range(4)]
    with server.channel() as channel:
        stub = perturbation_pb2_grpc.PerturbationStub(channel)
        held = [stub.Perturb(chain([settings(**SHUFFLE), item("a", "Q?")], gate), timeout=50) for gate in gates]
        for call in held:
            next(call)
        code, details = code_of(lambda: server.perturb([settings(**SHUFFLE)]))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "4 streams are open, and no more are taken" in details
        assert health(channel) == "SERVING"
        for gate in gates:
            gate.open()
        assert [list(call)[-1].summary.items for call in held] == [1, 1, 1, 1]
    assert server.perturb([settings(**SHUFFLE)])[-1].summary.conclusion == "The stream held no items."


def test_health_and_reflection_tell_what_is_served(server: Server) -> None:
    with server.channel() as channel:
        wait_until(lambda: health(channel) == "SERVING", what="the loaded encoder")
        assert health(channel, "") == "SERVING"
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        reply = next(stub.ServerReflectionInfo(iter([asked]), timeout=20))
        names = {service.name for service in reply.list_services_response.service}
    assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_every_method_of_the_contract_is_served(server: Server) -> None:
    methods = pb.DESCRIPTOR.services_by_name["Perturbation"].methods
    with server.channel() as channel:
        calls = [channel.stream_stream(f"/{SERVICE}/{method.name}")(iter([]), timeout=20) for method in methods]
        codes = [code_of(partial(list, call))[0] for call in calls]
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT] * 3
