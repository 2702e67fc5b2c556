"""How requests reach a model on Triton, and answers come back: by one stream, or by a call for each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from proctor.inference.triton.pieces import AnswerBounds, Pieces
from proctor.inference.triton.stub import TritonStub, read_streamed
from proctor.inference.triton.wire import read_piece, worded_failure
from proctor.inference.worker.backend import Answer, TrialFailure, printable

#: How long the server may take to end a stream whose requests are all answered.
_CLOSING_TIMEOUT_S = 5.0
#: What a response counts for at least, of the bytes that a stream may bring: an empty one takes time too.
_LEAST_COST = 64

#: What a model gets that gives its error no code: whether asking again may help is told from its words, as on a stream.
_MODEL_FAILED = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN})

FailureOf = Callable[[Any], TrialFailure]


class Exchange(Protocol):
    """A way to ask a model, for one shard."""

    async def ask(self, request: Any, bounds: AnswerBounds, *, deadline: float) -> Answer:
        """The answer to a request.

        Args:
            request: what is sent.
            bounds: what an answer to it may be.
            deadline: on the clock of `time.monotonic`, which is the event loop's too.

        Raises:
            TimeoutError: there was no answer before the deadline.
            TrialFailure: there is none.
        """
        ...

    async def close(self) -> None:
        """End it; what is still being answered is cancelled on the server."""
        ...


class Calls:
    """A call of its own for each request, for a model that is not decoupled.

    On a stream Triton sends such a model's responses in the order of the requests, so that one which takes long would
    hold up all that came after it, past their deadline; and Triton 2.51 now and then dies of streams to a batched one.
    """

    def __init__(self, stub: TritonStub, failure_of: FailureOf) -> None:
        self._stub = stub
        self._failure_of = failure_of

    async def ask(self, request: Any, bounds: AnswerBounds, *, deadline: float) -> Answer:
        """See `Exchange.ask`."""
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._stub.infer(request)
        except grpc.RpcError as error:
            if error.code() in _MODEL_FAILED:
                raise worded_failure(error.details() or "") from None
            raise self._failure_of(error) from None
        whole = Pieces(bounds)
        whole.add(read_piece(response))
        return whole.answer()

    async def close(self) -> None:
        """Nothing is open: each call ends with its request."""


class Stream:
    """One stream for all requests, and responses matched to them by id: what a decoupled model needs."""

    def __init__(self, stub: TritonStub, failure_of: FailureOf) -> None:
        self._call = stub.stream()
        self._failure_of = failure_of
        self._waiting: dict[str, _Waiting] = {}
        self._unwritten: deque[Any] = deque()
        self._to_write = asyncio.Event()
        self._ended: TrialFailure | None = None
        self._unanswered = False
        self._allowed = 0
        self._expiry: asyncio.TimerHandle | None = None
        self._reader = asyncio.create_task(self._read())
        # One for all: gRPC ends the whole stream when a write is cancelled, and a deadline must cost one request.
        self._writer = asyncio.create_task(self._write())

    async def ask(self, request: Any, bounds: AnswerBounds, *, deadline: float) -> Answer:
        """See `Exchange.ask`."""
        if self._ended is not None:
            raise self._ended.again()
        self._allowed += bounds.streamed_bytes
        waiting = self._waiting[request.id] = _Waiting(bounds, deadline)
        self._expire_at(deadline)
        self._unwritten.append(request)
        self._to_write.set()
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            self._unanswered = True
            raise
        finally:
            del self._waiting[request.id]

    async def close(self) -> None:
        """See `Exchange.close`."""
        if self._expiry is not None:
            self._expiry.cancel()
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
            # The writer too: gRPC never ends a write on a call that is cancelled before it has begun.
            tasks = [self._reader, self._writer]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # A call that is held keeps the connection open after the channel was closed, and an exception that is kept
            # anywhere holds its frames, and with them this stream.
            self._call = None

    async def _write(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write.clear()
                while self._unwritten:
                    request = self._unwritten.popleft()
                    if request.id in self._waiting:
                        await self._call.write(request)
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The reader knows why the stream ended; it may be a moment behind.
            await asyncio.wait({self._reader}, timeout=_CLOSING_TIMEOUT_S)
            if self._ended is None:
                self._end(TrialFailure("the stream to the server ended", retryable=True, unavailable=True))

    async def _read(self) -> None:
        try:
            async for data in self._call:
                if not self._deliver(read_streamed(data)):
                    self._unasked(len(data))
            self._end(TrialFailure("the server ended the stream", retryable=True, unavailable=True))
        except grpc.RpcError as error:
            self._end(self._failure_of(error))
        except TrialFailure as failure:
            # One that cannot be read may be of any request.
            self._end(failure)
        except asyncio.CancelledError:
            # Not raised further: nobody cancels the reader but `close`, and see there what a kept exception holds.
            self._end(TrialFailure("the stream was cancelled", retryable=True))
        except Exception as error:
            # A response that cannot be read must not leave its request waiting.
            self._end(TrialFailure(f"unreadable response: {printable(str(error))}", retryable=True))

    def _unasked(self, size: int) -> None:
        """A response that nobody waits for: the rest of an answer that was given up, or one of a server gone wild."""
        self._allowed -= max(size, _LEAST_COST)
        if self._allowed < 0:
            raise TrialFailure(
                "the server sends more that it was not asked for than answers could have", retryable=True
            )

    def _deliver(self, response: Any) -> bool:
        """Hand a response to the request that it is of. False where nobody waits for it."""
        request_id = response.infer_response.id
        if response.error_message:
            failure = worded_failure(response.error_message)
            if not request_id:
                self._end(failure)
            elif (waiting := self._waiting.get(request_id)) is not None:
                waiting.fail(failure)
            return not request_id or waiting is not None
        waiting = self._waiting.get(request_id)
        return waiting is not None and waiting.add(response.infer_response)

    def _expire_at(self, deadline: float) -> None:
        """Have one timer for all, at the earliest deadline: the trials of a shard share theirs."""
        if self._expiry is not None:
            if self._expiry.when() <= deadline:
                return
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._expiry, now = None, asyncio.get_running_loop().time()
        for waiting in list(self._waiting.values()):
            if waiting.deadline <= now:
                self._unanswered = True
                waiting.fail(TimeoutError())
            else:
                self._expire_at(waiting.deadline)

    def _end(self, failure: TrialFailure) -> None:
        self._ended = failure
        for waiting in list(self._waiting.values()):
            waiting.fail(failure.again())


class _Waiting:
    """The pieces of one answer until it is whole."""

    def __init__(self, bounds: AnswerBounds, deadline: float) -> None:
        self.deadline = deadline
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pieces = Pieces(bounds)

    def add(self, response: Any) -> bool:
        """Take one response; the final one completes the answer. False where there is one, or none, already."""
        if self.answer.done():
            return False
        try:
            piece = read_piece(response)
            self._pieces.add(piece)
            if piece.final:
                self.answer.set_result(self._pieces.answer())
        except TrialFailure as failure:
            self.fail(failure)
        return True

    def fail(self, failure: TrialFailure | TimeoutError) -> None:
        """End without an answer."""
        if not self.answer.done():
            self.answer.set_exception(failure)
