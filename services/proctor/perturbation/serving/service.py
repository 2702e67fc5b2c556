"""The RPCs of proctor.v1.Perturbation: messages on the event loop, the engine in one working thread beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, TypeVar, TypeVarTuple

import grpc
from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError, EncoderError, StoreError
from proctor.perturbation.serving.intake import in_batches
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.stream_engine import StreamEngine
from proctor.perturbation.serving.tally import Tally
from proctor.runtime.grpc.calls import Places, status_text
from proctor.runtime.grpc.messages import Unreadable, reader
from proctor.runtime.grpc.tokens import Tokens
from proctor.runtime.logs.context import carried

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Perturbation"].full_name
#: Seconds that a stream has to say its settings: it holds a place, and has asked for nothing yet.
OPENING_S: Final = 60.0
#: Who calls a server that asks for no token.
_ANYONE: Final = ""
_STATUSES: Final = {
    BadInputError: grpc.StatusCode.INVALID_ARGUMENT,
    EncoderError: grpc.StatusCode.FAILED_PRECONDITION,
    LimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    StoreError: grpc.StatusCode.UNAVAILABLE,
}

Arguments = TypeVarTuple("Arguments")
Request = TypeVar("Request", pb.PerturbRequest, pb.MeasureRequest, pb.CalibrateRequest)
Result = TypeVar("Result")


class PerturbationService:
    """Streams of items and pairs through one engine.

    Args:
        engine: what a batch is put through.
        worker: an executor of one thread. Streams take turns in it batch by batch, because the encoder uses every
            core already; a stream that is cancelled, or past its deadline, has no further batch made.
        limits: what is taken at once.
        tokens: whose each token is; None where callers show none.
    """

    def __init__(self, engine: StreamEngine, worker: Executor, limits: Limits, tokens: Tokens | None = None) -> None:
        self._engine = engine
        self._worker = worker
        self._limits = limits
        self._tokens = tokens
        several = tokens is not None and tokens.several
        self._streams = Places(
            "streams are open",
            limits.max_streams,
            limits.max_streams_each if several else limits.max_streams,
            "try again later, or start the server with a larger --max-streams",
        )
        self._calibrations = Places(
            "calibrations are under way", limits.max_calibrations, limits.max_calibrations, "try again later"
        )

    def handler(self) -> Any:
        """What a grpc.aio server is given. Not the generated one, which ends a stream at an unreadable message."""
        methods = {
            "Perturb": grpc.stream_stream_rpc_method_handler(
                self.perturb,
                request_deserializer=reader(pb.PerturbRequest),
                response_serializer=pb.PerturbReply.SerializeToString,
            ),
            "Measure": grpc.stream_stream_rpc_method_handler(
                self.measure,
                request_deserializer=reader(pb.MeasureRequest),
                response_serializer=pb.Measurement.SerializeToString,
            ),
            "Calibrate": grpc.stream_unary_rpc_method_handler(
                self.calibrate,
                request_deserializer=reader(pb.CalibrateRequest),
                response_serializer=pb.Calibration.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def perturb(self, requests: AsyncIterable[pb.PerturbRequest | Unreadable], context: Any) -> None:
        """Reword items; see the contract in perturbation.proto."""
        async with self._stream(context, "Perturb"):
            messages = aiter(requests)
            settings = (await _opening(messages)).settings
            recipe = await self.run(self._engine.recipe, settings)
            questions = await self.run(self._engine.questions, settings, self._limits)
            tally = Tally()
            async with aclosing(in_batches(messages, _bytes, self._limits)) as batches:
                async for batch in batches:
                    for reply in await self.run(self._engine.perturb, recipe, batch, tally.items, questions):
                        tally.add(reply)
                        await context.write(pb.PerturbReply(item=reply))
            encoder = self._engine.encoder()
            summary = tally.summary(min_yield=recipe.settings.min_yield, encoder=f"{encoder.name}@{encoder.digest}")
            await context.write(pb.PerturbReply(summary=summary))

    async def measure(self, requests: AsyncIterable[pb.MeasureRequest | Unreadable], context: Any) -> None:
        """Measure pairs; see the contract in perturbation.proto."""
        async with self._stream(context, "Measure"):
            messages = aiter(requests)
            settings = (await _opening(messages)).settings
            section = await self.run(self._engine.section, settings)
            questions = await self.run(self._engine.questions, settings, self._limits)
            measured = 0
            async with aclosing(in_batches(messages, _bytes, self._limits)) as batches:
                async for batch in batches:
                    for reply in await self.run(self._engine.measure, section, batch, measured, questions):
                        await context.write(reply)
                        measured += 1

    async def calibrate(
        self, requests: AsyncIterable[pb.CalibrateRequest | Unreadable], context: Any
    ) -> pb.Calibration:
        """Learn a window from labelled pairs; see the contract in perturbation.proto."""
        async with self._stream(context, "Calibrate"):
            messages = aiter(requests)
            with self._calibrations.of(_ANYONE):
                settings = (await _opening(messages)).settings
                stream = await self.run(self._engine.calibration, settings, self._limits)
                async with aclosing(in_batches(messages, _bytes, self._limits)) as batches:
                    async for batch in batches:
                        await self.run(stream.add, batch)
                return await self.run(stream.result)

    async def run(self, work: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
        """Work in the working thread. Cancelling drops it if it has not begun; what has begun is finished unseen."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, carried(work), *args)

    @asynccontextmanager
    async def _stream(self, context: Any, method: str) -> AsyncIterator[None]:
        """Take a place for a stream, and end it with the status of what goes wrong in it."""
        try:
            caller = None if self._tokens is None else self._tokens.caller(context.invocation_metadata())
            with self._streams.of(_ANYONE if caller is None else caller.name):
                yield
        except SQLAlchemyError as error:
            # Its own message holds the statement and what was to be written.
            log.exception("%s: the record store failed", method)
            what = f"the record store failed ({type(error).__name__}); see the server's log"
            await context.abort(grpc.StatusCode.UNAVAILABLE, what)
        except (BadInputError, EncoderError, LimitError, StoreError) as error:
            code = next(code for kind, code in _STATUSES.items() if isinstance(error, kind))
            log.info("%s ended with %s", method, code.name)
            await context.abort(code, status_text(error))
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            log.exception("%s failed", method)
            await context.abort(grpc.StatusCode.INTERNAL, f"{method} failed: {type(error).__name__}; see the log")


async def _opening(messages: AsyncIterator[Request | Unreadable]) -> Request:
    """A stream's first message, which carries its settings.

    Raises:
        BadInputError: when it does not.
    """
    try:
        async with asyncio.timeout(OPENING_S):
            first = await anext(messages, None)
    except TimeoutError:
        raise LimitError(f"the stream's settings did not come within {OPENING_S:g} s: send them first") from None
    if first is None or isinstance(first, Unreadable) or first.WhichOneof("content") != "settings":
        found = "the stream is empty" if first is None else "the first message carries none"
        raise BadInputError(f"settings are missing ({found}): send them in the first message")
    return first


def _bytes(message: Request | Unreadable) -> int:
    return 1 if isinstance(message, Unreadable) else message.ByteSize()
