"""One training from the pre-trained weights to its last cell, with the answers of every cell on the way."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from planted_leaks.asking import Asking
from planted_leaks.benchmarks import Benchmark, Example
from planted_leaks.cells import EXACT, NONE, Cell, Plan, Run, cells_of
from planted_leaks.grades import GradeStore
from planted_leaks.language_model import LanguageModel
from planted_leaks.rewordings import Admitted
from planted_leaks.routers import router_grades
from planted_leaks.training_texts import Clean, epoch_texts, leaked_items

#: Streams of randomness of a seed.
_SKILL, _LEAK, _FORGETTING = 1, 2, 3


class Training:
    """Trains one run and keeps the grades of its cells.

    Args:
        run: which.
        plan: of its kind of benchmark.
        benchmark: with the questions.
        admitted: the audit's rewordings.
        model: whose weights are those of the start.
        store: where grades are kept.
        work: folder of states to go on from, and of weights to serve.
        say: takes a line of progress.
    """

    def __init__(
        self, run: Run, plan: Plan, benchmark: Benchmark, admitted: Admitted, model: LanguageModel, store: GradeStore,
        work: Path, say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._run, self._plan, self._benchmark, self._model, self._store = run, plan, benchmark, model, store
        self._work, self._say = work, say
        self._asking = Asking(benchmark, admitted)
        self._leaked = leaked_items(benchmark, run.seed)
        self._tokens = 0

    def finish(self) -> None:
        """Train and ask until every cell of the run has its grades; what has them already is not done again."""
        cells = list(cells_of(self._run, self._plan))
        if all(cell in self._store for cell in cells):
            return
        clean = self._skilled()
        if (start := Cell(self._run.kind, NONE, 0, 0, self._run.seed)) in cells:
            self._ask(start)
        done = self._resume(clean, cells)
        for dose in self._plan.doses:
            for number in range(done, dose):
                texts = epoch_texts(self._benchmark, self._run, number, clean)
                self._train(texts, np.random.default_rng([self._run.seed, _LEAK, number]))
            done = max(done, dose)
            if any(cell.dose == dose and cell not in self._store for cell in cells):
                self._station(dose, clean)
        self._state_path.unlink(missing_ok=True)

    def _station(self, dose: int, clean: Clean) -> None:
        """Ask at a dose, and after each amount of clean text beyond it; the training then goes on from the dose."""
        state, taken = self._model.state(), clean.taken
        self._keep(dose, state, taken)
        self._ask(Cell(*self._run[:2], dose, 0, self._run.seed))
        stage = 2 * len(self._leaked) * dose
        before = 0
        for times in self._plan.forgetting.get(dose, ()):
            rng = np.random.default_rng([self._run.seed, _FORGETTING, dose, times])
            self._train(clean.take((times - before) * stage), rng)
            before = times
            self._ask(Cell(*self._run[:2], dose, times, self._run.seed))
        if before:
            self._model.load(state)
            clean.taken = taken

    def _train(self, texts: Sequence[Example], rng: np.random.Generator) -> None:
        began = time.monotonic()
        tokens, loss = self._model.train(texts, rng)
        self._tokens += tokens
        self._say(f"{self._run.name}: {tokens:,} tokens, loss {loss:.2f}, {tokens / (time.monotonic() - began):.0f}/s")

    def _ask(self, cell: Cell) -> None:
        if cell in self._store:
            return
        began = time.monotonic()
        grades = self._asking.ask(self._model)
        if cell.seed in self._plan.router_seeds and cell.dose == self._plan.doses[-1] and not cell.forgotten:
            grades = grades._replace(routers=router_grades(self._benchmark, self._model))
        leaked = set(self._leaked)
        signs = "".join("1" if place in leaked else "0" for place in range(len(self._benchmark.items)))
        self._store.add(cell, grades._replace(leaked=signs))
        if cell.dose == self._plan.doses[-1] and cell.leak == EXACT and not cell.forgotten and not self._served:
            self._model.save(self._work / "served" / cell.name)
        share = grades.canonical.count("1") / len(grades.canonical)
        self._say(f"{cell.name}: canonical {share:.1%}, asked in {time.monotonic() - began:.0f} s")

    def _skilled(self) -> Clean:
        """Bring the model to where it knows the form of the benchmark; made once a benchmark and seed, and kept."""
        clean = Clean(self._benchmark, self._run.seed)
        texts = clean.take(self._plan.skill)
        path = self._work / "skill" / f"{self._run.kind}-s{self._run.seed}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            # Another process may be at it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                self._train(texts, np.random.default_rng([self._run.seed, _SKILL]))
                _save(path, {"copies": self._model.state()["copies"]})
            self._model.load_weights(torch.load(path, weights_only=True))
        return clean

    @property
    def _served(self) -> bool:
        """Whether weights of this kind are kept to be served: those of one seed do."""
        return any((self._work / "served").glob(f"{self._run.kind}-*"))

    @property
    def _state_path(self) -> Path:
        return self._work / "states" / f"{self._run.name}.pt"

    def _keep(self, dose: int, state: dict[str, Any], taken: int) -> None:
        self._state_path.parent.mkdir(parents=True, exist_ok=True)
        _save(self._state_path, {**state, "dose": dose, "taken": taken})

    def _resume(self, clean: Clean, cells: Sequence[Cell]) -> int:
        """Go on where an earlier process was interrupted; returns the dose that the model has had."""
        if not self._state_path.exists():
            return 0
        state = torch.load(self._state_path, weights_only=True)
        if any(cell.dose < state["dose"] and cell not in self._store for cell in cells):
            # The plan has got a smaller dose since.
            return 0
        self._model.load(state)
        clean.taken = state["taken"]
        return int(state["dose"])


def _save(path: Path, state: dict[str, Any]) -> None:
    # Whole or not at all: a run may be ended at any time.
    beside = path.with_suffix(".part")
    torch.save(state, beside)
    beside.replace(path)
