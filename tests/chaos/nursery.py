"""A process that has loaded what every worker loads, and forks a worker whenever it is told to.

A worker takes a second of processor time to start, nearly all of it imports; a run with a thousand deaths would
measure those. What is forked has its own session, environment, log and settings, and runs `proctor worker`.

Speaks JSON lines on its standard streams: `{"start": {...}}` answers `{"pid": n}`; `{"poll": []}` answers the ids of
the processes that have ended since. At the end of its input it kills every worker and leaves.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

#: Loaded before the first fork. Not the services' own modules, which read settings and register tasks when loaded.
_PRELOADED = (
    "celery.bin.worker", "celery.worker", "celery.concurrency.solo", "celery.concurrency.prefork",
    "celery.concurrency.thread", "celery.beat", "celery.apps.worker", "celery.apps.beat", "celery.bin.celery",
    "kombu.transport.redis", "redis", "sqlalchemy", "sqlalchemy.dialects.sqlite", "pydantic", "numpy", "scipy.special",
    "httpx", "jinja2", "click", "proctor.domain.messages", "proctor.domain.manifest", "proctor.runtime.artifacts.store",
    "proctor.runtime.records.store", "proctor.runtime.metrics.recording", "proctor.runtime.redis.presence",
    "proctor.evidence.protocol.channel", "proctor.evidence.perturbation.channel", "proctor.scorer.report.assembly",
    "proctor.scorer.grading.ahead", "proctor.scorer.page.html", "proctor.scorer.grading.loading",
    "proctor.scorer.score", "proctor.perturbation.engine", "proctor.inference.worker.attempts",
    "proctor.inference.http.openai", "proctor.exposure.shard_search", "proctor.cli.worker",
    "tests.chaos.hooks",
)  # fmt: skip
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the driver until its end of the pipe closes."""
    for module in _PRELOADED:
        importlib.import_module(module)
    answers, children = sys.stdout, set[int]()
    print(json.dumps({"pid": os.getpid()}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            child = _fork(request["start"])
            children.add(child)
            answer: dict[str, Any] = {"pid": child}
        else:
            ended = _ended()
            children -= set(ended)
            answer = {"ended": ended}
        print(json.dumps(answer), file=answers, flush=True)
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _ended() -> list[int]:
    ended = []
    with suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            ended.append(child)
    return ended


def _fork(worker: dict[str, Any]) -> int:
    parent, child = os.getpid(), os.fork()
    if child:
        return child
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    _become(worker)


def _become(worker: dict[str, Any]) -> NoReturn:
    with Path(worker["log"]).open("ab") as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ.update(worker["env"])
    from proctor.cli.worker import worker as command
    from tests.chaos import hooks

    status = 1
    try:
        hooks.install(worker["service"])
        command.main([worker["service"], *worker["arguments"]], standalone_mode=False)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
