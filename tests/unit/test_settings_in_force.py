"""No setting on a card that was not in force: every field of how a model is asked, at every kind of endpoint, on the
wire of a server that runs.

Of each field a suite is asked with one value and with another. Either what reaches the server differs (or what is made
of its answer), or the suite is refused, or both have the same card.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import pytest
from tritonclient.grpc import model_config_pb2, service_pb2_grpc

from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.errors import ProctorError
from proctor.domain.item import Item
from proctor.domain.log_origin import UNKNOWN
from proctor.domain.operator_endpoint import parse_operator_endpoints
from proctor.domain.replicates import AnswerDecoding, of_replicate
from proctor.domain.suite import ModelSection, PromptSection, Suite
from proctor.domain.suite_problems import parse_suite
from proctor.domain.trial import Arm, Completion
from proctor.inference.reference import sampling
from proctor.inference.worker.open_backend import open_backend
from proctor.router.plan import plan_fresh, replicated
from proctor.router.submit.asked import asked_models
from proctor.router.submit.endpoints import resolve_endpoint
from proctor.runtime.settings import Settings
from tests.answering_http import Asked, Reply, serving
from tests.installed_plugins import Plugins
from tests.unit.test_triton_client import ALL_INPUTS, Server, piece, prompt_of

BUNDLE: Final = Path(__file__).parents[2] / "services" / "triton"
ITEM: Final = Item(item_id="q", question="What is 17 + 4?", target="21")
TEMPLATE: Final = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_TENSORRT: Final = {"text_input": "STRING", "max_tokens": "INT32", "top_k": "INT32"}
_WHOLE_TENSORRT: Final = _TENSORRT | {
    "temperature": "FP32", "top_p": "FP32", "seed": "UINT64", "stop_words": "STRING", "exclude_input_in_output": "BOOL",
}  # fmt: skip

_PLUGIN: Final = """
from proctor.inference.worker.backend import Answer
from proctor.inference.worker.prompt_backend import PromptBackend

SEEN = []


class Silent(PromptBackend):
    async def answer(self, prompt, decoding):
        SEEN.append((self.spec.url, prompt))
        return Answer("A" + chr(10) + "B", "stop")


class Telling(PromptBackend):
    in_force = frozenset({"temperature", "top_p", "max_tokens", "seed", "stop", "served_name", "chat"})

    async def answer(self, prompt, decoding):
        SEEN.append((self.spec.url, self.spec.served_name, self.spec.chat, prompt, decoding.model_dump_json()))
        return Answer("A" + chr(10) + "B", "stop")
"""


class Kind(NamedTuple):
    """How an endpoint is spoken to, and what stands in a suite that asks it."""

    name: str
    backend: str
    chat: str = "none"
    inputs: Mapping[str, str] | tuple[str, ...] = ALL_INPUTS
    decoupled: bool = True
    template: bool = False


KINDS: Final = [
    Kind("in_process", "in_process"),
    Kind("triton vllm", "triton"),
    Kind("triton vllm, not decoupled", "triton", decoupled=False),
    Kind("triton vllm, templated", "triton", chat="user", template=True),
    Kind("triton tensorrt_llm", "triton", inputs=_WHOLE_TENSORRT),
    Kind("triton tensorrt_llm of few inputs", "triton", inputs=_TENSORRT | {"exclude_input_in_output": "BOOL"}),
    Kind("triton of a prompt alone", "triton", inputs=("text_input",)),
    Kind("openai completions", "openai"),
    Kind("openai chat", "openai", chat="user"),
    Kind("infer", "infer"),
    Kind("plug-in that says nothing", "silent"),
    Kind("plug-in that says what it sends", "telling"),
]


class Change(NamedTuple):
    """A field, two values of it, and what has to stand around it."""

    field: str
    before: Any
    after: Any
    around: Mapping[str, Any] = {}


_DRAWN: Final = {"decoding_config.temperature": 0.7}
CHANGES: Final = [
    Change("decoding_config.temperature", 0.0, 0.7),
    Change("decoding_config.top_p", 1.0, 0.9, _DRAWN),
    Change("decoding_config.max_tokens", 64, 33),
    Change("decoding_config.seed", None, 7, _DRAWN),
    Change("decoding_config.stop", [], ["\n"]),
    Change("decoding_config.replicates", 1, 2, _DRAWN),
    Change("prompt_config.template", None, "Q: {question}\nA:"),
    Change("prompt_config.chat_template", "none", "user"),
    Change("prompt_config.few_shot", [], [{"question": "1 + 1 = ?", "answer": "2"}]),
    Change("model_config.served_name", None, "other"),
]
_FEW: Final = "triton tensorrt_llm of few inputs"
#: Kind and field → what the refusal says; "*" for every field.
REFUSED: Final = {
    ("in_process", "decoding_config.top_p"): "leave out top_p",
    ("in_process", "prompt_config.chat_template"): "has no chat template; set prompt_config.chat_template to 'none'",
    ("in_process", "model_config.served_name"): "other",
    ("triton vllm", "prompt_config.chat_template"): "no chat template is applied",
    ("triton vllm, not decoupled", "prompt_config.chat_template"): "no chat template is applied",
    ("triton tensorrt_llm", "prompt_config.chat_template"): "no chat template is applied",
    (_FEW, "decoding_config.temperature"): "decoding_config.temperature cannot be honoured",
    (_FEW, "decoding_config.top_p"): "cannot be honoured",
    (_FEW, "decoding_config.seed"): "cannot be honoured",
    (_FEW, "decoding_config.replicates"): "cannot be honoured",
    (_FEW, "prompt_config.chat_template"): "no chat template is applied",
    ("triton of a prompt alone", "*"): "no setting of decoding_config would be in force",
    ("triton of a prompt alone", "prompt_config.chat_template"): "no chat template is applied",
    ("plug-in that says nothing", "prompt_config.chat_template"): "does not say that it asks by chat",
}
#: What is audited, and whom to ask for it: no settings.
SUBJECT: Final = {"model_id", "model_version", "endpoint", "backend"}


def test_every_field_of_how_a_model_is_asked_is_tried() -> None:
    fields = {
        **{f"model_config.{name}": None for name in ModelSection.model_fields if name not in SUBJECT},
        **{f"prompt_config.{name}": None for name in PromptSection.model_fields},
        **{f"decoding_config.{name}": None for name in AnswerDecoding.model_fields},
    }
    assert {change.field for change in CHANGES} == set(fields)


class Told(NamedTuple):
    """What came of asking a suite: what reached the server and what was made of it, or why it was refused."""

    card: ProtocolCard | None = None
    wire: Any = None
    refused: str | None = None


@pytest.fixture
def toys(plugins: Plugins) -> None:
    plugins.install(
        {"toy_asked": _PLUGIN}, {"proctor.backends": {"silent": "toy_asked:Silent", "telling": "toy_asked:Telling"}}
    )


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("change", CHANGES, ids=[change.field for change in CHANGES])
@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_setting_reaches_the_server_or_is_refused_or_is_not_on_the_card(
    kind: Kind, change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = {"prompt_config.chat_template": kind.chat, **change.around}
    before = told(kind, {**around, change.field: change.before}, tmp_path, monkeypatch)
    after = told(kind, {**around, change.field: change.after}, tmp_path, monkeypatch)
    refusal = REFUSED.get((kind.name, change.field)) or REFUSED.get((kind.name, "*"))
    if refusal is not None:
        assert after.refused is not None, f"{change.field} is taken and was to be refused"
        assert refusal in after.refused
        return
    assert (before.refused, after.refused) == (None, None)
    assert before.card is not None
    assert after.card is not None
    if before.wire == after.wire:
        assert before.card == after.card, f"{change.field} stands on the card and was not in force"
        assert before.card.protocol_digest == after.card.protocol_digest
    else:
        assert before.card != after.card, f"{change.field} changes what is asked and not the card"


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("infer", True),
        ("plug-in that says nothing", True),
        ("plug-in that says what it sends", False),
        ("openai completions", False),
    ],
)
def test_what_an_endpoint_is_not_sent_is_unknown_on_the_card(
    name: str, unknown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = next(one for one in KINDS if one.name == name)
    card = told(kind, {"decoding_config.temperature": 0.7}, tmp_path, monkeypatch).card
    assert card is not None
    said = [*card.decoding_policy.values(), card.prompt_template["chat_template"]]
    assert (UNKNOWN in said) is unknown
    assert (said.count(UNKNOWN) == len(said)) is unknown


def test_a_template_that_is_applied_stands_on_the_card_by_its_digest_and_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = next(one for one in KINDS if one.template)
    found = told(kind, {"prompt_config.chat_template": "user"}, tmp_path, monkeypatch)
    raw = told(kind, {"prompt_config.chat_template": "none"}, tmp_path, monkeypatch)
    assert found.card is not None
    assert raw.card is not None
    assert found.card.prompt_template["applied_template"]["digest"].startswith("sha256:")
    assert "applied_template" not in raw.card.prompt_template
    assert found.card.protocol_digest != raw.card.protocol_digest
    (sent,), (plain,) = found.wire[0], raw.wire[0]
    assert sent["text_input"] == f"<|user|>{plain['text_input']}</s><|assistant|>"


def told(kind: Kind, fields: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Ask what a suite with these fields asks, of a server of the kind."""
    try:
        return asyncio.run(_told(kind, fields, tmp_path, monkeypatch))
    except ProctorError as error:
        return Told(refused=str(error))


async def _told(kind: Kind, fields: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    async with _server(kind, monkeypatch) as (url, wire):
        endpoint: dict[str, Any] = {"url": url, "backend": kind.backend}
        if kind.template:
            file = tmp_path / "tokenizer_config.json"
            file.write_text(json.dumps({"chat_template": TEMPLATE, "bos_token": "<s>", "eos_token": "</s>"}))
            endpoint["chat_template"] = str(file)
        listed = parse_operator_endpoints(json.dumps({"here": endpoint}), source="test")
        settings = Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_BUNDLE": str(BUNDLE)})
        settings = settings.model_copy(update={"endpoints": listed})
        suite = _suite(kind, fields)
        asked = asked_models(suite, settings)
        card = protocol_card(suite, ContentDigests(), evaluator_version="test", asked=asked)
        answers = await _answers(suite, settings)
        failed = next((one.error for one in answers if one.error is not None), None)
        if failed is not None:
            return Told(refused=failed)
        # A plug-in's URL is not the same each time.
        return Told(card, (list(wire), [one.text for one in answers]))


async def _answers(suite: Suite, settings: Settings) -> list[Completion]:
    trials = [trial.model_copy(update={"arm": Arm.CANONICAL}) for trial in plan_fresh([ITEM], suite.prompt)]
    backend = open_backend(resolve_endpoint(suite, settings), settings)
    answers: list[Completion] = []
    try:
        for trial in replicated(trials, suite.decoding.replicates):
            one = suite.decoding.of_one
            decoding = one if suite.decoding.replicates == 1 else of_replicate(one, trial.replicate)
            answers += await backend.complete([trial], decoding, deadline_s=60.0)
    finally:
        await backend.close()
    return answers


def _suite(kind: Kind, fields: Mapping[str, Any]) -> Suite:
    model = {"model_id": "org/reference-clean", "model_version": "sha256:" + "0" * 12, "endpoint": "here"}
    if kind.backend == "in_process":
        from proctor.inference.reference.model import weights_digest

        model["model_version"] = weights_digest(BUNDLE / "models" / "reference-clean" / "1")
    document: dict[str, Any] = {
        "audit_suite_id": "s",
        "model_config": model,
        "dataset_config": {"benchmark_name": "b"},
        "perturbation_config": {"perturbation_strategy": "wordings"},
        "decoding_config": {"max_tokens": 64},
    }
    for path, value in fields.items():
        section, _, name = path.partition(".")
        document[section] = {**document.get(section, {}), name: value}
    return parse_suite(json.dumps(document))


@asynccontextmanager
async def _server(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, list[Any]]]:
    if kind.backend == "triton":
        async with _triton(kind) as found:
            yield found
        return
    others: dict[str, AbstractContextManager[tuple[str, list[Any]]]] = {
        "openai": _http(kind),
        "infer": _http(kind),
        "in_process": _in_process(monkeypatch),
    }
    with others.get(kind.backend) or _plugin() as found:
        yield found


@asynccontextmanager
async def _triton(kind: Kind) -> AsyncIterator[tuple[str, list[Any]]]:
    servicer = _Triton(kind)
    server = grpc.aio.server()
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}", servicer.seen
    finally:
        await server.stop(None)


class _Triton(Server):
    """Says "A" and "B" on two lines, and keeps the tensors of what it was asked."""

    def __init__(self, kind: Kind) -> None:
        async def answer(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for request in requests:
                yield piece(request.id, "A\nB")

        super().__init__(answer, (), "", None if kind.decoupled else {})
        self.kind = kind
        self.seen: list[Any] = _Seen(self.asked)

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        response = await super().ModelConfig(request, context)
        kinds = self.kind.inputs if isinstance(self.kind.inputs, Mapping) else dict.fromkeys(self.kind.inputs, "STRING")
        for name, datatype in kinds.items():
            response.config.input.add(name=name, data_type=getattr(model_config_pb2, f"TYPE_{datatype}"))
        return response


class _Seen(list[Any]):
    """Requests as they are looked at: by model and tensor, without the number of each."""

    def __init__(self, requests: list[Any]) -> None:
        super().__init__()
        self._requests = requests

    def __iter__(self) -> Iterator[Any]:
        for request in self._requests:
            tensors = {one.name: raw for one, raw in zip(request.inputs, request.raw_input_contents, strict=True)}
            yield {**tensors, "text_input": prompt_of(request), "model": request.model_name}


@contextmanager
def _http(kind: Kind) -> Iterator[tuple[str, list[Any]]]:
    seen: list[Any] = []

    def answer(_: int, asked: Asked) -> Reply:
        body = dict(asked.body)
        # Names the trial by what is asked, not by a setting.
        seen.append((asked.path, body))
        text = "A\nB"
        choice = {"text": text, "message": {"content": text}, "finish_reason": "stop"}
        said = {"response": text} if kind.backend == "infer" else {"choices": [choice]}
        return Reply(body=json.dumps(said).encode())

    with serving(answer) as server:
        yield (f"{server.url}/infer" if kind.backend == "infer" else server.url), seen


@contextmanager
def _in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[Any]]]:
    seen: list[Any] = []

    def generate(model: Any, asked: Any) -> Any:
        seen.append([(prompt, tuple(how)) for prompt, how in asked])
        return sampling.generate(model, asked)

    with monkeypatch.context() as patched:
        patched.setattr("proctor.inference.reference.in_process.generate", generate)
        yield "in-process://here", seen


def _plugin() -> AbstractContextManager[tuple[str, list[Any]]]:
    import toy_asked  # type: ignore[import-not-found]

    toy_asked.SEEN.clear()
    return nullcontext(("http://127.0.0.1:9/v1", toy_asked.SEEN))
