"""What a model's configuration says of it: its weights, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tritonclient.grpc import model_config_pb2

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import EndpointError
from proctor.inference.worker.backend import printable

#: Inputs of a model that are looked at; TensorRT-LLM's ensemble has 40.
MAX_INPUTS: Final = 256
#: Characters of its inputs' names that a message shows.
_NAME_CHARACTERS: Final = 200
_DATATYPES: Final = {number: name for name, number in model_config_pb2.DataType.items()}

#: Parameter of a model's configuration that declares the digest of its weights: a line that somebody wrote.
DIGEST_PARAMETER = "model_digest"
#: Input and output by which a model of Proctor's says what it computed from the files that it loaded.
WEIGHTS_INPUT: Final = "return_weights_digest"
WEIGHTS_OUTPUT: Final = "weights_digest"


class Dialect(StrEnum):
    """Whose tensor names a model takes."""

    VLLM = "vllm"
    """Triton's vLLM backend: sampling parameters in one JSON text."""
    TENSORRT_LLM = "tensorrt_llm"
    """The `ensemble` and `tensorrt_llm_bls` models of TensorRT-LLM: a tensor for each parameter."""


class InputTensor(NamedTuple):
    """An input of a model. `datatype` is the protocol's name, as in BYTES or INT32."""

    datatype: str
    optional: bool


class ModelFacts(NamedTuple):
    """What a model's configuration says of it. `inputs` is empty where the server keeps it to itself."""

    digest: str | None = None
    backend: str = ""
    batched: bool = False
    inputs: Mapping[str, InputTensor] = MappingProxyType({})
    streamed: bool = True
    """Whether it is asked by a stream: a decoupled model must be, and any model can be."""

    @property
    def dialect(self) -> Dialect:
        """Told from the inputs; vLLM's where they are not known."""
        is_tensorrt = "max_tokens" in self.inputs and "sampling_parameters" not in self.inputs
        return Dialect.TENSORRT_LLM if is_tensorrt else Dialect.VLLM

    @property
    def states_weights(self) -> bool:
        """Whether the model says in its answers which weights it computed the digest of."""
        return WEIGHTS_INPUT in self.inputs

    @property
    def repeats_the_prompt(self) -> bool:
        """Whether an answer begins with its prompt: a model that cannot be told to leave it out repeats it."""
        return bool(self.inputs) and "exclude_input_in_output" not in self.inputs


def read_facts(config: Any, model: str, url: str) -> ModelFacts:
    """What Proctor needs to know of a `ModelConfig`.

    Raises:
        EndpointError: the model takes neither vLLM's tensors nor TensorRT-LLM's.
    """
    if len(config.input) > MAX_INPUTS:
        raise EndpointError(
            f"model {model!r} on {url} has {len(config.input):,} inputs; a model has at most {MAX_INPUTS}"
        )
    inputs = {
        str(tensor.name): InputTensor(_datatype(tensor.data_type), bool(tensor.optional)) for tensor in config.input
    }
    if inputs and "text_input" not in inputs:
        names = printable(", ".join(sorted(inputs)))[:_NAME_CHARACTERS]
        raise EndpointError(
            f"model {model!r} on {url} takes the inputs {names}, not text_input; "
            "Proctor speaks to models with the tensors of Triton's vLLM backend or of TensorRT-LLM's ensemble"
        )
    if inputs and not inputs.keys() & {"sampling_parameters", "max_tokens"}:
        raise EndpointError(
            f"model {model!r} on {url} takes neither sampling_parameters nor max_tokens, so that no setting of "
            "decoding_config would be in force; serve it behind the tensors of Triton's vLLM backend"
        )
    digest = config.parameters[DIGEST_PARAMETER].string_value if DIGEST_PARAMETER in config.parameters else ""
    backend = str(config.backend or config.platform)
    return ModelFacts(
        digest=digest if FULL_DIGEST.fullmatch(digest) else None,
        backend=printable(backend)[:40],
        batched=config.max_batch_size > 0,
        inputs=inputs,
        streamed=config.model_transaction_policy.decoupled,
    )


def _datatype(number: int) -> str:
    """The name of a configuration's data type on the wire."""
    name = _DATATYPES.get(number, "").removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name
