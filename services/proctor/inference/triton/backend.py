"""The Triton backend: gRPC to a model with the tensors of vLLM or TensorRT-LLM, decoupled or not.

One connection is kept; every call of `complete` has a stream of its own on it, or its own calls, so cancelling one ends
its requests on the server and nobody else's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import grpc
from tritonclient.grpc import service_pb2

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.domain.weights import Weights
from proctor.inference.http.public_place import check_encrypted, place_of
from proctor.inference.triton.facts import ModelFacts, read_facts
from proctor.inference.triton.session import TritonSession
from proctor.inference.triton.stream import Calls, Stream
from proctor.inference.triton.stub import MAX_MESSAGE_BYTES, TritonStub
from proctor.inference.triton.wire import UNLOADED, RequestTemplate
from proctor.inference.worker.backend import Probe, TrialFailure, attempt, check_version, failed, printable
from proctor.inference.worker.window import Window, map_bounded
from proctor.runtime.triton_channel import TritonAddress, triton_address

#: How long questions about the server itself may take; it answers them without running a model.
_METADATA_TIMEOUT_S = 10.0
#: How long a model may take to say which weights it loaded: it waits its turn behind prompts.
_STATEMENT_TIMEOUT_S = 30.0
#: Waits before the first question of a shard is asked again, where its connection was found cut.
_CUT_WAITS_S = (0.0, 0.05, 0.2)
_RETRYABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
_KEPT_TO_ITSELF = frozenset({grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.PERMISSION_DENIED})


class TritonBackend:
    """A model on a Triton server."""

    def __init__(self, spec: EndpointSpec, *, window: Window | None = None) -> None:
        """Raises BadInputError: the URL is not grpc://host:port or grpcs://host:port, or must be grpcs and is not."""
        self._spec = spec
        self._address = _address(spec.url)
        if spec.public_only:
            check_encrypted(spec.url, encrypted=self._address.secure)
        self._window = window or Window()
        self._channel: Any = None
        self._stub: TritonStub | None = None

    async def probe(self) -> Probe:
        """Ask the server what it is, and whether it serves the pinned model."""
        try:
            stub = await self._connected()
            server = await stub.ask(
                "ServerMetadata", service_pb2.ServerMetadataRequest(), timeout_s=_METADATA_TIMEOUT_S
            )
            named = service_pb2.ModelReadyRequest(name=self._spec.served_name)
            ready = await stub.ask("ModelReady", named, timeout_s=_METADATA_TIMEOUT_S)
            facts = await self._facts() if ready.ready else None
        except grpc.RpcError as error:
            failure = self._rpc_failure(error)
            return Probe(False, detail=str(failure), unavailable=failure.unavailable)
        except TrialFailure as failure:
            return Probe(False, detail=str(failure), unavailable=failure.unavailable)
        except EndpointError as error:
            return Probe(False, detail=str(error))
        name = "Triton" if server.name == "triton" else printable(server.name)[:40]
        described = f"{name} {printable(server.version)[:40]}"
        if facts is None:
            detail = f"{self._spec.url} serves no model {self._spec.served_name!r} that is ready"
            return Probe(False, server=described, detail=detail)
        described += f" ({facts.backend or 'unknown'} backend)"
        try:
            self._check_digest(facts)
            self._check_chat(facts)
            stated = await self._stated_weights(facts)
        except TrialFailure as failure:
            # A busy model is asked again: what is known of its weights is not to depend on the moment.
            away = failure.unavailable or failure.retryable
            return Probe(False, facts.digest, described, str(failure), away)
        except EndpointError as error:
            return Probe(False, facts.digest, described, str(error))
        if stated is not None:
            return Probe(True, stated, described, weights=Weights.PROVEN)
        # A line in the model's configuration, which nobody need have held against the files.
        return Probe(True, facts.digest, described)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        try:
            session = await self.session(decoding, repeats=0, deadline_s=deadline_s)
        except TrialFailure as failure:
            return [failed(trial, self._spec, failure) for trial in trials]
        try:
            return await map_bounded(
                self._window,
                trials,
                lambda trial: len(trial.prompt),
                lambda trial: attempt(session, trial, self._spec, deadline),
            )
        finally:
            await session.close()

    async def session(
        self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False
    ) -> TritonSession:
        """Trials one by one; see `Server.session`. No request is sent again but after a doubtful refusal."""
        try:
            facts = await self._facts(timeout_s=min(deadline_s, _METADATA_TIMEOUT_S))
        except grpc.RpcError as error:
            raise self._rpc_failure(error) from None
        # Asked before every shard: a server that restarted with other weights must not answer for the pinned ones.
        self._check_digest(facts)
        self._check_chat(facts)
        # Checked before anything is opened: the template refuses settings that the model cannot honour.
        template = RequestTemplate(self._spec.served_name, facts, decoding)
        exchange = (Stream if facts.streamed else Calls)(await self._connected(), self._rpc_failure)
        return TritonSession(self._spec, facts, decoding, template, exchange)

    async def close(self) -> None:
        """Give back the connection."""
        if self._channel is not None:
            channel, self._channel, self._stub = self._channel, None, None
            await channel.close()

    async def _connected(self) -> TritonStub:
        if self._stub is None:
            place = await place_of(self._address, self._spec.server_name, public_only=self._spec.public_only)
            given = self._address.channel_options(max_receive_bytes=MAX_MESSAGE_BYTES)
            options = list(dict([*given, *place.options]).items())
            # Not before the look-up: two that wait for it would each open a channel.
            if self._stub is None:
                if self._address.secure:
                    self._channel = grpc.aio.secure_channel(
                        place.target, grpc.ssl_channel_credentials(), options=options
                    )
                else:
                    self._channel = grpc.aio.insecure_channel(place.target, options=options)
                self._stub = TritonStub(self._channel)
        return self._stub

    async def _facts(self, *, timeout_s: float = _METADATA_TIMEOUT_S) -> ModelFacts:
        try:
            response = await self._model_config(timeout_s)
        except grpc.RpcError as error:
            if error.code() in _KEPT_TO_ITSELF or "restricted" in (error.details() or ""):
                return ModelFacts()
            raise
        return read_facts(response.config, self._spec.served_name, self._spec.url)

    async def _model_config(self, timeout_s: float) -> Any:
        request = service_pb2.ModelConfigRequest(name=self._spec.served_name)
        # The first call of a shard is the one that finds the connection cut since the last shard, and gRPC may hand the
        # next call to the same dead connection while it is still taking that down.
        for wait_s in _CUT_WAITS_S:
            try:
                return await (await self._connected()).ask("ModelConfig", request, timeout_s=timeout_s)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or _is_refused(error):
                    raise
            await asyncio.sleep(wait_s)
        return await (await self._connected()).ask("ModelConfig", request, timeout_s=timeout_s)

    def _check_digest(self, facts: ModelFacts) -> None:
        if facts.digest is not None:
            check_version(self._spec, facts.digest)

    async def _stated_weights(self, facts: ModelFacts) -> str | None:
        """What the model computed from its files, where it is one of Proctor's and says so: it is asked one prompt."""
        if not facts.states_weights:
            return None
        session = await self.session(Decoding(max_tokens=1), repeats=0, deadline_s=_METADATA_TIMEOUT_S)
        try:
            return await session.stated_weights(deadline=time.monotonic() + _STATEMENT_TIMEOUT_S)
        finally:
            await session.close()

    def _check_chat(self, facts: ModelFacts) -> None:
        """Raises EndpointError: messages would be sent as they are, or could not be told from what answers them."""
        if not self._spec.chat:
            return
        where = f"{self._spec.served_name!r} on {self._spec.url} is to be asked by chat (chat_template 'user')"
        if self._spec.chat_template is None:
            raise EndpointError(
                f"{where}, and no chat template is known that would be applied; submit the suite anew with "
                "chat_template 'none', or have the operator give the endpoint its chat_template in PROCTOR_ENDPOINTS"
            )
        if facts.repeats_the_prompt:
            raise EndpointError(
                f"{where}, and repeats its prompt without the template's tokens, so that its answer cannot be told "
                "from it; serve it with the input exclude_input_in_output, or ask with chat_template 'none'"
            )

    def _rpc_failure(self, error: Any) -> TrialFailure:
        code, details = error.code(), printable(error.details() or "")
        retryable = code in _RETRYABLE
        if _is_refused(error):
            return TrialFailure(f"connection refused at {self._spec.url}", retryable=True, unavailable=True)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return TrialFailure(f"{self._spec.url} did not answer in time", retryable=True, unavailable=True)
        if code == grpc.StatusCode.UNAVAILABLE or UNLOADED in details:
            return TrialFailure(f"{self._spec.url} is unavailable: {details}", retryable=True, unavailable=True)
        if code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
            retryable = False
        return TrialFailure(f"{self._spec.url} answered {code.name}: {details}", retryable=retryable)


def _is_refused(error: Any) -> bool:
    return "onnection refused" in (error.details() or "")


def _address(url: str) -> TritonAddress:
    try:
        address = triton_address(url)
    except ValueError:
        address = None
    if address is None or address.path:
        raise BadInputError(
            f"the Triton endpoint {url[:200]!r} is not a URL like grpc://host:8001 or grpcs://host:8001"
        )
    return address
