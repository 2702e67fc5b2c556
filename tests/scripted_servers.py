"""Servers of one model for the balanced backend: they do what a test says, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.backend import Answer, Probe, TrialFailure, answered

AWAY = TrialFailure("connection refused", retryable=True, unavailable=True)
BUSY = TrialFailure("answered 429", retryable=True)
REFUSED = TrialFailure("the prompt is too long", retryable=False)


class ScriptedServer:
    """One server. `fault` is raised instead of an answer; `gate` is waited for before one."""

    def __init__(self, spec: EndpointSpec) -> None:
        self.spec = spec
        self.digest: str | None = None
        self.fault: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.fault_of: Callable[[Trial], Exception | None] = lambda _: None
        self.asked: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.sessions = 0
        self.open_sessions = 0
        self.closed = False

    async def probe(self) -> Probe:
        if self.fault is not None:
            return Probe(False, detail=str(self.fault))
        return Probe(True, self.digest, "scripted")

    async def session(
        self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False
    ) -> ScriptedSession:
        if isinstance(self.fault, EndpointError):
            raise EndpointError(str(self.fault))
        self.sessions += 1
        self.open_sessions += 1
        return ScriptedSession(self)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        raise AssertionError("servers that share a shard are asked trial by trial")

    async def close(self) -> None:
        self.closed = True


class ScriptedSession:
    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        server = self._server
        server.asked.append(trial.item_id)
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            if server.gate is not None:
                await server.gate.wait()
            fault = server.fault or server.fault_of(trial)
            if isinstance(fault, TrialFailure):
                raise fault.again()
            if fault is not None:
                raise fault
            answer = Answer(f"{server.spec.url} {trial.item_id}", "stop", 1, 1, server.digest)
            return answered(trial, server.spec, answer, max_tokens=512, latency_s=0.001)
        finally:
            server.in_flight -= 1

    async def close(self) -> None:
        self._server.open_sessions -= 1


class ScriptedServers:
    """Opens servers, and remembers them by URL."""

    def __init__(self, prepare: Callable[[ScriptedServer], None] = lambda _: None) -> None:
        self._prepare = prepare
        self.by_url: dict[str, ScriptedServer] = {}

    def open(self, spec: EndpointSpec) -> ScriptedServer:
        server = self.by_url[spec.url] = ScriptedServer(spec)
        self._prepare(server)
        return server

    def __getitem__(self, name: str) -> ScriptedServer:
        return next(server for url, server in self.by_url.items() if name in url)
