"""What every protocol of the gateway goes through: who calls, how much at once, whose turn it is, and what went wrong.

Of one process there is one front, so that callers have the same places and the same rates whichever way they come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.submitter import LOCAL, ForbiddenError, Role, Submitter, UnknownCallerError, hold_to
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import Submitted, UnknownAuditError
from proctor.gateway.fields import FieldError
from proctor.gateway.limits import Limits
from proctor.gateway.oidc.bearer import Bearers, Verified
from proctor.gateway.rates import Changes, Rates
from proctor.runtime.grpc.calls import Places, Turns
from proctor.runtime.grpc.tokens import Tokens, shown_token
from proctor.runtime.logs.context import carried

__all__ = ["ForbiddenError", "Front", "UnknownCallerError", "hold_to"]

Arguments = TypeVarTuple("Arguments")
Message = TypeVar("Message")
Result = TypeVar("Result")


class LeavingError(ProctorError):
    """The server is about to end."""


class Fault(Enum):
    """What went wrong with a call, by who has to do something about it."""

    FIELD = "field"
    """A field of the request is out of its bounds."""
    REFUSED = "refused"
    """The request is understood, and cannot be met as it is."""
    UNKNOWN_AUDIT = "unknown audit"
    UNKNOWN_CALLER = "unknown caller"
    FORBIDDEN = "forbidden"
    """The caller is known, and their role does not include it."""
    LIMIT = "limit"
    AWAY = "away"
    """A store or a service does not answer, or the server is leaving: the same call may do later."""


def fault_of(error: ProctorError) -> Fault:
    """What kind of fault an error is."""
    kinds: dict[type[ProctorError], Fault] = {
        UnknownAuditError: Fault.UNKNOWN_AUDIT,
        FieldError: Fault.FIELD,
        UnknownCallerError: Fault.UNKNOWN_CALLER,
        ForbiddenError: Fault.FORBIDDEN,
        BadInputError: Fault.REFUSED,
        LimitError: Fault.LIMIT,
    }
    return next((fault for kind, fault in kinds.items() if isinstance(error, kind)), Fault.AWAY)


def said_of_the_records(error: SQLAlchemyError) -> str:
    """What callers are told of the record store's failure: its own words hold what was to be written."""
    return f"the record store failed ({type(error).__name__}); see the server's log"


class Front:
    """The desk behind its counter.

    Args:
        desk: audits on the stores of this machine.
        workers: threads in which the stores are asked, because their clients wait.
        limits: what is taken at once.
        tokens: whose each token is; None where callers show none, and are all taken for `unnamed`.
        unnamed: who callers are where they show no token: this machine's, else.
        bearers: who shows a token of an issuer's; None where no issuer is known.
    """

    def __init__(
        self,
        desk: LocalDesk,
        workers: Executor,
        limits: Limits,
        tokens: Tokens | None = None,
        unnamed: Submitter = LOCAL,
        bearers: Bearers | None = None,
    ) -> None:
        self.desk = desk
        self.limits = limits
        self.tokens = tokens
        self.unnamed = unnamed
        self.bearers = bearers
        self._workers = workers
        several = bearers is not None or (tokens is not None and tokens.several)
        self.watches = Places(
            "audits are being watched",
            limits.max_watches,
            limits.max_watches_each if several else limits.max_watches,
            "try again later, or start the server with a larger --max-watches",
        )
        self.calls = Places(
            "calls are open",
            limits.max_other_calls,
            limits.max_other_calls_each if several else limits.max_other_calls,
            "try again later",
        )
        self.reading = Turns(limits.max_messages, limits.max_messages // 2 if several else limits.max_messages)
        self._uploading = Turns(limits.max_uploads, 1 if several else limits.max_uploads)
        self._submitting = asyncio.Semaphore(limits.max_submissions)
        self._rates = Rates()
        self._changes = Changes()
        self._leaving = asyncio.Event()

    @property
    def trusts_anyone(self) -> bool:
        """Whether callers show nothing by which they are known."""
        return self.tokens is None and self.bearers is None

    async def caller(self, shown: Any) -> Submitter:
        """Who shows these headers.

        Args:
            shown: names in small letters and values, as `Tokens.caller` takes them.

        Raises:
            UnknownCallerError: when there is no right token among them.
            ForbiddenError: when the token is right, and has no role here.
            IssuerAwayError: when an issuer has to be asked for its keys, and does not answer.
        """
        if self.trusts_anyone:
            return self.unnamed
        token = shown_token(shown)
        if token is None:
            # Over gRPC refused before its message was read (TokenCheck), unless somebody forgets to have that done.
            raise UnknownCallerError("the token is missing or wrong")
        return (await self.verified(token)).caller

    async def verified(self, token: str) -> Verified:
        """Whose a token is, of a list or of an issuer, and until when it is good.

        Raises:
            UnknownCallerError: as `caller`.
            ForbiddenError: as `caller`.
            IssuerAwayError: as `caller`.
        """
        caller = None if self.tokens is None else self.tokens.of_token(token)
        if caller is not None:
            return Verified(caller, float("inf"))
        if self.bearers is None:
            raise UnknownCallerError("the token is missing or wrong")
        return await self.bearers.verified(token)

    @asynccontextmanager
    async def place(self, shown: Any, places: Places) -> AsyncIterator[Submitter]:
        """A place for who shows these headers, for as long as the block lasts.

        Args:
            shown: as `caller`.
            places: of the kind of the call.

        Raises:
            UnknownCallerError: as `caller`.
            LimitError: when there is no place.
        """
        caller = await self.caller(shown)
        with places.of(caller.name):
            yield caller

    def hold_to(self, caller: Submitter, role: Role) -> None:
        """Let a caller do what takes this role, before it is done: a change counts as one.

        Raises:
            ForbiddenError: when their role does not include it.
            LimitError: when they made too many changes within a minute.
        """
        hold_to(caller, role)
        if role is not Role.VIEWER:
            self._changes.take(caller.name)

    async def submit(
        self,
        caller: Submitter,
        read: Callable[[], Awaitable[Message]],
        begin: Callable[[LocalDesk, list[Message]], Submitted],
    ) -> Submitted:
        """Read a submission when it is its turn, and begin it.

        Args:
            caller: whose it is.
            read: gives the message.
            begin: takes it out of its list, so that nobody else holds it while its items are in memory.

        Raises:
            ForbiddenError: when the caller may not submit.
            LimitError: when the caller submits too often.
            BadInputError: when the message cannot be read, or as `LocalDesk.submit_attached`.
        """
        self.hold_to(caller, Role.OPERATOR)
        desk = self.desk.of(caller)
        self._rates.take(caller.name, desk.ceilings.max_submissions_per_hour)
        async with self._uploading.of(caller.name):
            message = [await read()]
            async with self._submitting:
                return await self.run(begin, desk, message)

    async def run(self, work: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
        """Do what waits for a store in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, carried(work), *args)

    def leave(self) -> None:
        """End every watch: an audit may take longer than the server has."""
        self._leaving.set()

    async def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            LeavingError: when the server ends meanwhile.
        """
        try:
            await asyncio.wait_for(self._leaving.wait(), seconds)
        except TimeoutError:
            return
        raise LeavingError("the server is leaving; the audit goes on, so watch it again when the server is back")
