"""How far one answer goes through the router's modules: who reads the code walks that way."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest

from proctor.router import tasks
from proctor.router.barring import Barrier
from tests.integration.router_support import answered, router_bench

#: Times that the walk may come back to a module which it has been in.
MAX_RETURNS = 12


def test_one_answer_comes_back_to_a_module_at_most_a_dozen_times(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        # As a router has it: it asks the operator's marks before it hands anything out.
        dispatcher = replace(tasks._dispatcher(), barred=Barrier(bench.settings, bench.artifacts).cause)
        monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)
        bench.to_answering()
        shards = bench.handed_out()
        # Not the first one: what is looked up once for an audit is no part of the way that every answer goes.
        bench.answer(shards[0], completions="sha256:" + "1" * 64)
        bench.sent.clear()
        message = answered(shards[1], completions="sha256:" + "2" * 64)
        modules: list[str] = []

        def note(frame: FrameType, event: str, argument: object) -> None:
            module = frame.f_globals.get("__name__", "")
            if event == "call" and module.startswith("proctor.router."):
                modules.append(module.removeprefix("proctor.router."))

        sys.setprofile(note)
        try:
            tasks.shards_answered(message)
        finally:
            sys.setprofile(None)
    stays = [module for module, _ in groupby(modules)]
    returns = len(stays) - len(set(stays))
    assert returns <= MAX_RETURNS, f"{returns} returns, {len(modules)} calls: {' > '.join(stays)}"
    assert bench.sent, "the walk is of an answer after which more is handed out"
