"""The Triton backend: gRPC streaming to a model with vLLM's tensors, decoupled or not.

One connection is kept; every call of `complete` has a stream of its own on it, so cancelling one ends its requests
on the server and nobody else's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from proctor.domain.canonical import digest_matches
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.messages import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.backend import Answer, Probe, TrialFailure, answered, failed, printable, prompt_bytes
from proctor.inference.triton_wire import ModelFacts, RequestTemplate, read_facts, read_piece, stream_failure
from proctor.inference.window import Window, map_bounded

#: How long questions about the server itself may take; it answers them without running a model.
_METADATA_TIMEOUT_S = 10.0
#: How long the server may take to end a stream whose requests are all answered.
_CLOSING_TIMEOUT_S = 5.0
#: Above the largest answer, with room for its envelope; the channel's default of 4 MiB is not.
_MAX_RECEIVE_BYTES = 32 << 20
_DEFAULT_PORT = 8001
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
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
        """Raises BadInputError unless the URL is grpc://host:port or grpcs://host:port."""
        self._spec = spec
        self._target, self._secure, self._loopback = _target(spec.url)
        self._window = window or Window()
        self._channel: Any = None
        self._stub: Any = None

    async def probe(self) -> Probe:
        """Ask the server what it is, and whether it serves the pinned model."""
        try:
            stub = self._connected()
            server = await stub.ServerMetadata(service_pb2.ServerMetadataRequest(), timeout=_METADATA_TIMEOUT_S)
            ready = await stub.ModelReady(
                service_pb2.ModelReadyRequest(name=self._spec.served_name), timeout=_METADATA_TIMEOUT_S
            )
            facts = await self._facts() if ready.ready else None
        except grpc.RpcError as error:
            return Probe(False, detail=self._rpc_failure(error).args[0])
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
        except EndpointError as error:
            return Probe(False, facts.digest, described, str(error))
        return Probe(True, facts.digest, described)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        try:
            facts = await self._facts(timeout_s=min(deadline_s, _METADATA_TIMEOUT_S))
        except grpc.RpcError as error:
            failure = self._rpc_failure(error)
            return [failed(trial, self._spec, failure) for trial in trials]
        # Asked before every shard: a server that restarted with other weights must not answer for the pinned ones.
        self._check_digest(facts)
        template = RequestTemplate(self._spec.served_name, facts, decoding)
        exchange = _Exchange(self._connected(), self._rpc_failure)
        try:
            return await map_bounded(
                self._window,
                list(enumerate(trials)),
                lambda numbered: len(numbered[1].prompt),
                lambda numbered: self._ask(exchange, template, facts, numbered, deadline),
            )
        finally:
            await exchange.close()

    async def close(self) -> None:
        """Give back the connection."""
        if self._channel is not None:
            channel, self._channel, self._stub = self._channel, None, None
            await channel.close()

    async def _ask(
        self,
        exchange: _Exchange,
        template: RequestTemplate,
        facts: ModelFacts,
        numbered: tuple[int, Trial],
        deadline: float,
    ) -> Completion:
        number, trial = numbered
        started = time.monotonic()
        try:
            # The place in the shard, not the trial's id: two equal trials must not take each other's answer.
            request = template.request(str(number), prompt_bytes(trial.prompt))
            async with asyncio.timeout(deadline - started):
                answer = await exchange.ask(request)
        except TimeoutError:
            failure = TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True)
            return failed(trial, self._spec, failure, latency_s=time.monotonic() - started)
        except TrialFailure as failure:
            return failed(trial, self._spec, failure, latency_s=time.monotonic() - started)
        if facts.inputs and "exclude_input_in_output" not in facts.inputs:
            # A model that cannot be told to leave the prompt out repeats it.
            answer = answer._replace(text=answer.text.removeprefix(trial.prompt))
        latency_s = time.monotonic() - started
        return answered(trial, self._spec, answer, model_digest=facts.digest, latency_s=latency_s)

    def _connected(self) -> Any:
        if self._stub is None:
            options = [
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", _MAX_RECEIVE_BYTES),
                # gRPC's default backs off for up to two minutes, long after a restarted server is back.
                ("grpc.initial_reconnect_backoff_ms", 200),
                ("grpc.max_reconnect_backoff_ms", 2000),
                ("grpc.enable_http_proxy", 0 if self._loopback else 1),
            ]
            if self._secure:
                credentials = grpc.ssl_channel_credentials()
                self._channel = grpc.aio.secure_channel(self._target, credentials, options=options)
            else:
                self._channel = grpc.aio.insecure_channel(self._target, options=options)
            self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        return self._stub

    async def _facts(self, *, timeout_s: float = _METADATA_TIMEOUT_S) -> ModelFacts:
        request = service_pb2.ModelConfigRequest(name=self._spec.served_name)
        try:
            response = await self._connected().ModelConfig(request, timeout=timeout_s)
        except grpc.RpcError as error:
            if error.code() in _KEPT_TO_ITSELF or "restricted" in (error.details() or ""):
                return ModelFacts(None, "", False, frozenset())
            raise
        return read_facts(response.config, self._spec.served_name, self._spec.url)

    def _check_digest(self, facts: ModelFacts) -> None:
        if facts.digest is not None and not digest_matches(self._spec.model_version, facts.digest):
            raise EndpointError(
                f"{self._spec.url} serves {self._spec.served_name!r} with weights {facts.digest}, the suite pins "
                f"{self._spec.model_version}; serve the pinned weights, or pin the ones that are to be audited"
            )

    def _rpc_failure(self, error: Any) -> TrialFailure:
        code, details = error.code(), printable(error.details() or "")
        retryable = code in _RETRYABLE
        if "onnection refused" in details:
            return TrialFailure(f"connection refused at {self._spec.url}", retryable=True)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return TrialFailure(f"{self._spec.url} did not answer in time", retryable=True)
        if code == grpc.StatusCode.UNAVAILABLE:
            return TrialFailure(f"{self._spec.url} cannot be reached: {details}", retryable=True)
        if code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
            retryable = False
        return TrialFailure(f"{self._spec.url} answered {code.name}: {details}", retryable=retryable)


class _Exchange:
    """One stream: requests out, responses matched to them by id."""

    def __init__(self, stub: Any, failure_of: Any) -> None:
        self._call = stub.ModelStreamInfer()
        self._failure_of = failure_of
        self._waiting: dict[str, _Waiting] = {}
        self._writing = asyncio.Lock()
        self._writes: set[asyncio.Task[None]] = set()
        self._ended: TrialFailure | None = None
        self._unanswered = False
        self._reader = asyncio.create_task(self._read())

    async def ask(self, request: Any) -> Answer:
        """The answer to a request. Raises TrialFailure; cancel it to give up waiting."""
        if self._ended is not None:
            raise self._ended
        waiting = self._waiting[request.id] = _Waiting()
        try:
            # Shielded: gRPC ends the whole stream when a write is cancelled, and a deadline must cost one request.
            writing = asyncio.create_task(self._write(request))
            self._writes.add(writing)
            writing.add_done_callback(self._writes.discard)
            await asyncio.shield(writing)
            return await waiting.answer
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The reader knows why the stream ended; it may be a moment behind.
            await asyncio.wait({self._reader}, timeout=_CLOSING_TIMEOUT_S)
            raise self._ended or TrialFailure("the stream to the server ended", retryable=True) from None
        except asyncio.CancelledError:
            self._unanswered = True
            raise
        finally:
            self._waiting.pop(request.id, None)
            if not waiting.answer.cancel() and not waiting.answer.cancelled():
                # A failure that came while the request was still being written is known already: mark it as seen.
                waiting.answer.exception()

    async def close(self) -> None:
        """End the stream; what is still being answered is cancelled on the server."""
        try:
            if self._unanswered or self._ended is not None:
                self._call.cancel()
            else:
                await self._call.done_writing()
            await asyncio.wait({self._reader}, timeout=_CLOSING_TIMEOUT_S)
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass
        finally:
            self._call.cancel()
            self._reader.cancel()
            await asyncio.gather(self._reader, *self._writes, return_exceptions=True)

    async def _write(self, request: Any) -> None:
        async with self._writing:
            await self._call.write(request)

    async def _read(self) -> None:
        try:
            async for response in self._call:
                self._deliver(response)
            self._end(TrialFailure("the server ended the stream", retryable=True))
        except grpc.RpcError as error:
            self._end(self._failure_of(error))
        except asyncio.CancelledError:
            self._end(TrialFailure("the stream was cancelled", retryable=True))
            raise
        except Exception as error:
            # A response that cannot be read must not leave its request waiting.
            self._end(TrialFailure(f"unreadable response: {error}", retryable=True))

    def _deliver(self, response: Any) -> None:
        request_id = response.infer_response.id
        if response.error_message:
            failure = stream_failure(response.error_message)
            if not request_id:
                self._end(failure)
            elif (waiting := self._waiting.get(request_id)) is not None:
                waiting.fail(failure)
            return
        if (waiting := self._waiting.get(request_id)) is not None:
            waiting.add(response.infer_response)

    def _end(self, failure: TrialFailure) -> None:
        self._ended = failure
        for waiting in list(self._waiting.values()):
            waiting.fail(failure)


class _Waiting:
    """The pieces of one answer until it is whole."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._texts: list[str] = []
        self._whole = Answer("")

    def add(self, response: Any) -> None:
        """Take one response; the final one completes the answer."""
        if self.answer.done():
            return
        try:
            piece = read_piece(response)
        except TrialFailure as failure:
            self.fail(failure)
            return
        if piece.text is not None:
            self._texts.append(piece.text)
            tokens = [count for count in (self._whole.output_tokens, piece.output_tokens) if count is not None]
            self._whole = Answer("", piece.finish_reason, piece.input_tokens, sum(tokens) if tokens else None)
        if piece.final:
            if self._texts:
                self.answer.set_result(self._whole._replace(text="".join(self._texts)))
            else:
                self.fail(TrialFailure("the server ended the request without an answer", retryable=True))

    def fail(self, failure: TrialFailure) -> None:
        """End without an answer."""
        if not self.answer.done():
            self.answer.set_exception(failure)


def _target(url: str) -> tuple[str, bool, bool]:
    """gRPC's target of an endpoint URL, whether it is encrypted, and whether it is this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORT
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("grpc", "grpcs") or not parts.hostname or parts.path not in ("", "/"):
        raise BadInputError(
            f"the Triton endpoint {url[:200]!r} is not a URL like grpc://host:8001 or grpcs://host:8001"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}", parts.scheme == "grpcs", parts.hostname in _LOOPBACK
