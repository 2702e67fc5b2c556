"""The peer: one Celery task a prompt, joined by a chord, with its results in the same Valkey."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from celery import Celery, chord

from benchmarking.null_model import text_for
from benchmarking.servers import process, python, wait_for

_URL = os.environ.get("BENCH_CHORD_URL", "redis://127.0.0.1:6379")
_TIMEOUT_S = 600.0

app = Celery("benchmarking.celery_chord", broker=f"{_URL}/3", backend=f"{_URL}/4")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=4, broker_connection_retry_on_startup=True)


@app.task(name="answer")  # type: ignore[untyped-decorator]
def answer(prompt: str) -> str:
    """One prompt."""
    return text_for(prompt)


@app.task(name="joined")  # type: ignore[untyped-decorator]
def joined(answers: list[str]) -> int:
    """All answers."""
    return len(answers)


class Chord:
    """A worker that answers prompts, each in a task of its own."""

    def run(self, prompts: Sequence[str]) -> float:
        """Seconds until the chord's body has all answers."""
        started_s = time.monotonic()
        result = chord([answer.s(prompt) for prompt in prompts])(joined.s())
        count = result.get(timeout=_TIMEOUT_S)
        taken_s = time.monotonic() - started_s
        # While the server is there: Celery asks it to forget when the result is collected.
        result.forget()
        assert count == len(prompts)
        return taken_s


@contextmanager
def chord_worker(folder: Path, broker_url: str, *, processes: int) -> Iterator[Chord]:
    """A worker with so many processes."""
    app.conf.update(broker_url=f"{broker_url}/3", result_backend=f"{broker_url}/4")
    log = folder / "chord.log"
    with ExitStack() as stack:
        argv = python("benchmarking.celery_chord", str(processes))
        worker = stack.enter_context(process(argv, log, {"BENCH_CHORD_URL": broker_url}))
        stack.callback(app.close)
        wait_for(lambda: bool(app.control.ping(timeout=0.5)), worker, log)
        yield Chord()


if __name__ == "__main__":
    # Not as __main__: the tasks belong to the module that the sender knows.
    from benchmarking.celery_chord import app as named

    named.worker_main(
        ["worker", f"--concurrency={sys.argv[1]}", "--loglevel=WARNING", "--without-gossip", "--without-mingle"]
    )
