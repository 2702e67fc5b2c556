"""`proctor worker` for a benchmark: with the null model behind every endpoint, and a note of when what is done.

python -m benchmarking.worker null|null-small|real SERVICE

`null-small` answers at once too, but is handed as little at a time as a model that writes at length: a shard of 32
trials a message.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

from benchmarking.moments import Moments

#: Variable that names the folder in which the workers note moments, and the files' names there.
MOMENTS: Final = "BENCH_MOMENTS"
#: A pack of shards was begun, or some of it was answered.
ASKED: Final = "asked"
#: Grades were stored as answers came in, or made when the audit was scored.
GRADED: Final = "graded"
#: All grades of an audit were at hand.
WEIGHED: Final = "weighed"


def main() -> None:
    """Run the worker."""
    from proctor.cli.main import main as proctor

    model, service = sys.argv[1:]
    folder = Path(os.environ[MOMENTS])
    if service == "inference":
        if model != "real":
            _answer_at_once()
        _note_when_asked(Moments(folder / ASKED))
    if service == "router" and model == "null-small":
        _hand_out_little()
    if service == "scorer":
        _note_when_graded(Moments(folder / GRADED), Moments(folder / WEIGHED))
    sys.argv[1:] = ["worker", service, "--log-level", "WARNING"]
    sys.exit(proctor())


def _answer_at_once() -> None:
    from benchmarking.null_model import NullBackend

    shards: Any = importlib.import_module("proctor.inference.worker.shards")

    def open_null(spec: Any, settings: Any) -> NullBackend:
        return NullBackend(spec)

    shards.open_backend = open_null


def _hand_out_little() -> None:
    packs: Any = importlib.import_module("proctor.router.pools.packs")
    packs.SHARD_TRIALS = packs.MAX_SHARD_TRIALS = packs.MIN_SHARD_TRIALS
    packs.MAX_TOGETHER = 1


def _note_when_asked(asked: Moments) -> None:
    attempts: Any = importlib.import_module("proctor.inference.worker.attempts").Attempts
    run = attempts.run

    def noted(self: Any, message: Any) -> Any:
        asked.note()
        for answers in run(self, message):
            asked.note()
            yield answers

    attempts.run = noted


def _note_when_graded(graded: Moments, weighed: Moments) -> None:
    tasks: Any = importlib.import_module("proctor.scorer.tasks")
    loading: Any = importlib.import_module("proctor.scorer.grading.loading")
    tasks.grade_and_store = _followed_by(tasks.grade_and_store, graded)
    loading.grade_answered = _followed_by(loading.grade_answered, graded)
    tasks.load_rows = _followed_by(tasks.load_rows, weighed)


def _followed_by(function: Callable[..., Any], moments: Moments) -> Callable[..., Any]:
    @wraps(function)
    def noted(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        moments.note()
        return result

    return noted


if __name__ == "__main__":
    main()
