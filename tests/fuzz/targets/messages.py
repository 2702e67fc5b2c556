"""What travels between services, and what callers of the gRPC services send."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proctor.domain import messages
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.messages import Message
from proctor.domain.suite_problems import parse_suite
from proctor.domain.trial import Decoding
from proctor.gateway.attachments import gather_attached
from proctor.gateway.convert import priority_of
from proctor.gateway.fields import FieldError, files_of
from proctor.gateway.rpc import audit_pb2
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.serving.rpc import perturbation_pb2
from proctor.perturbation.serving.stream_engine import StreamEngine
from proctor.runtime.artifacts.packing import packed, unpacked
from proctor.runtime.grpc.messages import Unreadable, reader
from proctor.runtime.messaging.foreign_entries import _fault
from tests.fuzz.target import Target
from tests.suites.examples import SMALL
from tests.unit.variant_samples import HashedEncoder, MemoryRows

_DIGEST = "sha256:" + "0" * 64
_ENDPOINT = EndpointSpec(backend="triton", url="grpc://127.0.0.1:8001", served_name="m", model_version=None)


def _kinds() -> dict[str, type[Message]]:
    found = (kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message))
    return {kind.task: kind for kind in found if kind is not Message}


def _feed_message(data: bytes) -> None:
    """The task's name on the first line, as it stands in the headers, then the message."""
    name, _, body = data.partition(b"\n")
    kinds = _kinds()
    kind = kinds.get(name.decode("latin-1")) or list(kinds.values())[sum(name) % len(kinds)]
    message = kind.model_validate(json.loads(body))
    assert kind.model_validate(message.plain()) == message, "a message is another after it was sent"


def _messages() -> list[bytes]:
    run = messages.RunShards(
        audit_id="a-1",
        shards=(messages.ShardToRun(shard_id="s-1", attempt=1, shard=_DIGEST),),
        endpoint=_ENDPOINT,
        decoding=Decoding(),
        deadline_s=60.0,
    )
    answer = messages.ShardAnswer(shard_id="s-1", attempt=1, completions=_DIGEST, n_trials=32, output_tokens=64)
    told: list[Message] = [
        run,
        messages.ShardsAnswered(audit_id="a-1", answers=(answer,)),
        messages.StartAudit(audit_id="a-1"),
        messages.BuildVariants(audit_id="a-1", items=_DIGEST, settings=_DIGEST, benchmark="b"),
        messages.EndpointProbed(audit_id="a-1", ok=True, model_digest=_DIGEST),
        messages.Reconcile(),
    ]
    return [message.task.encode() + b"\n" + json.dumps(message.plain()).encode() for message in told]


def _feed_entry(data: bytes) -> None:
    """An entry of a queue, of which only a fault is told, or none."""
    fault = _fault(data)
    assert fault is None or len(fault) <= 256


def _entries() -> list[bytes]:
    message = messages.StartAudit(audit_id="a-1")
    arguments = [[], {"message": message.plain()}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
    headers = {"task": message.task, "id": "1", "root_id": "1", "lang": "py", "argsrepr": "()", "kwargsrepr": "{}"}
    properties = {"delivery_tag": "1", "delivery_info": {"exchange": "", "routing_key": "router"}, "body_encoding": ""}
    return [json.dumps({"body": json.dumps(arguments), "headers": headers, "properties": properties}).encode()]


def _feed_artifact(data: bytes) -> None:
    """An object of the artifact store that somebody else wrote: only what its digest says comes out."""
    unpacked(data, f"sha256:{hashlib.sha256(b'content' * 40).hexdigest()}", where="fuzz")


def _feed_submit(data: bytes) -> None:
    """What the gateway does with a submission before anything is on record."""
    request = reader(audit_pb2.SubmitRequest)(data)
    if isinstance(request, Unreadable):
        return
    files = files_of(request)
    priority_of(request.priority)
    with tempfile.TemporaryDirectory() as nothing:
        gather_attached(parse_suite(request.suite), files, Path(nothing), Path(nothing))


@cache
def _submissions() -> list[bytes]:
    dataset = {"benchmark_name": "b", "path": "items.jsonl", "sample_size": 2}
    suite = {**SMALL, "dataset_config": dataset}
    request = audit_pb2.SubmitRequest(suite=json.dumps(suite), priority=audit_pb2.PRIORITY_HIGH)
    request.files.add(name="items.jsonl", content=b'{"question": "Q?", "answer": "1"}\n')
    return [request.SerializeToString()]


@cache
def _engine() -> StreamEngine:
    return StreamEngine(HashedEncoder, VariantLibrary(MemoryRows()), Path("/nonexistent"))


def _fed_stream(kind: Any, work: Callable[[StreamEngine, Any], Any]) -> Callable[[bytes], None]:
    read = reader(kind)

    def feed(data: bytes) -> None:
        message = read(data)
        if not isinstance(message, Unreadable):
            work(_engine(), message)

    return feed


def _settings() -> Any:
    config = perturbation_pb2.PerturbationConfig(
        perturbation_strategy="typo", num_variants_per_item=1, min_semantic_distance=0.0, max_semantic_distance=1.9
    )
    return perturbation_pb2.StreamSettings(perturbation_config=config, benchmark="b")


def _perturb(engine: StreamEngine, message: Any) -> None:
    if message.WhichOneof("content") == "settings":
        engine.recipe(message.settings)
        return
    (reply,) = engine.perturb(engine.recipe(_settings()), [message], 0)
    reply.SerializeToString()


def _measure(engine: StreamEngine, message: Any) -> None:
    if message.WhichOneof("content") == "settings":
        engine.section(message.settings)
        return
    (reply,) = engine.measure(engine.section(_settings()), [message], 0)
    reply.SerializeToString()


def _item() -> Any:
    item = perturbation_pb2.Item(item_id="a", question="How many apples are 3 and 4?", choices=["7", "8"], target="7")
    item.metadata["subject"] = "sums"
    item.rewordings.add(question="What is 3 plus 4 apples?")
    return item


def _perturb_requests() -> list[bytes]:
    requests = [perturbation_pb2.PerturbRequest(settings=_settings()), perturbation_pb2.PerturbRequest(item=_item())]
    return [request.SerializeToString() for request in requests]


def _measure_requests() -> list[bytes]:
    pair = perturbation_pb2.Pair(original=_item(), rewording=perturbation_pb2.Wording(question="What is 3 plus 4?"))
    requests = [perturbation_pb2.MeasureRequest(settings=_settings()), perturbation_pb2.MeasureRequest(pair=pair)]
    return [request.SerializeToString() for request in requests]


TARGETS = (
    Target(
        "messages",
        ("proctor.domain.messages", "proctor.domain.endpoint"),
        _feed_message,
        _messages,
        (ValueError, ValidationError, RecursionError),
        words=tuple(name.encode() for name in sorted(_kinds())),
    ),
    Target(
        "queue_entries",
        ("proctor.runtime.messaging.foreign_entries",),
        _feed_entry,
        _entries,
        words=(b'"body"', b'"headers"', b'"properties"', b'"__type__"', b'"datetime"', b'"decimal"', b'"bytes"'),
    ),
    Target(
        "artifacts",
        ("proctor.runtime.artifacts.store", "proctor.runtime.artifacts.compression"),
        _feed_artifact,
        lambda: [packed(b"content" * 40), packed(b"other"), packed(bytes(1 << 16))],
        (StoreError,),
        words=(b"\x78\x9c", b"\x78\x01", b"\x78\xda", b"\x1f\x8b"),
    ),
    Target(
        "grpc_submit",
        ("proctor.gateway.attachments", "proctor.gateway.convert", "proctor.gateway.named_files"),
        _feed_submit,
        _submissions,
        (FieldError, BadInputError),
        words=(b"items.jsonl", b'"path"', b'"rewordings_path"', b"../", b"/etc/passwd"),
    ),
    Target(
        "grpc_perturb",
        ("proctor.perturbation.serving.convert", "proctor.perturbation.serving.stream_engine"),
        _fed_stream(perturbation_pb2.PerturbRequest, _perturb),
        _perturb_requests,
        (BadInputError,),
        words=(b"typo", b"imported", b"calibrated"),
        max_bytes=4096,
    ),
    Target(
        "grpc_measure",
        ("proctor.perturbation.serving.convert", "proctor.perturbation.admission.measure"),
        _fed_stream(perturbation_pb2.MeasureRequest, _measure),
        _measure_requests,
        (BadInputError,),
        words=(b"7", b"not", b"twelve"),
        max_bytes=4096,
    ),
)
