"""One real server asked by Proctor: whole audits as a user runs them, and prompts one after the other."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.domain.backends import Backend
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.http.openai import OpenAIBackend
from proctor.inference.triton.backend import TritonBackend
from proctor.inference.worker.backend import Probe
from tests.models.answers import Answers, answers_of
from tests.models.questions import MAX_TOKENS, write_suite
from tests.models.servers import Served


class Audit(NamedTuple):
    """An audit that has ended."""

    status: int
    result: Mapping[str, Any]
    answers: Answers
    took_s: float


def audit(served: Served, home: Path, named: Path, *, chat: bool) -> Audit:
    """`proctor audit run` on a stack that is up.

    Args:
        served: the server that is asked.
        home: of the stack.
        named: the operator's file of endpoints.
        chat: ask by messages of a chat, or by completions.
    """
    style = "chat" if chat else "completion"
    folder = home.parent / f"{served.name}-{style}"
    folder.mkdir()
    suite = write_suite(folder, served.section(), chat=chat, name=f"sums-{style}-{served.name.replace('.', '-')}")
    begun = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(home), "--format", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PROCTOR_ENDPOINTS": f"@{named}"},
    )
    took_s = time.monotonic() - begun
    assert run.stdout, run.stderr
    result = json.loads(run.stdout)
    audit_id = Path(result["report_path"]).parent.name
    found = Audit(run.returncode, result, answers_of(audit_id, home), took_s)
    tokens = sum(one.output_tokens or 0 for one in found.answers.values())
    print(f"{served.name}, {style}: {len(found.answers)} trials and {tokens} tokens in {took_s:.0f} s")
    return found


def one_by_one(served: Served, prompts: Sequence[str], *, deadline_s: float = 120.0) -> list[Completion]:
    """What the server says to each prompt when it has no other to answer, so that nothing depends on its neighbours."""

    async def ask() -> list[Completion]:
        backend = _backend(served)
        try:
            said = list[Completion]()
            for number, prompt in enumerate(prompts):
                trial = Trial(arm=Arm.CANONICAL, item_id=str(number), prompt=prompt)
                said += await backend.complete([trial], Decoding(max_tokens=MAX_TOKENS), deadline_s=deadline_s)
            return said
        finally:
            await backend.close()

    return asyncio.run(ask())


def probe(served: Served, name: str = "") -> Probe:
    """Whether the server says that it serves a model of this name, by default its own."""

    async def ask() -> Probe:
        backend = _backend(served, name=name)
        try:
            return await backend.probe()
        finally:
            await backend.close()

    return asyncio.run(ask())


def _backend(served: Served, *, name: str = "") -> TritonBackend | OpenAIBackend:
    backend: Backend = "triton" if served.command.url.startswith("grpc") else "openai"
    spec = EndpointSpec(
        backend=backend,
        url=served.command.url,
        served_name=name or served.command.served_name,
        model_version=served.weights,
    )
    return TritonBackend(spec) if backend == "triton" else OpenAIBackend(spec)
