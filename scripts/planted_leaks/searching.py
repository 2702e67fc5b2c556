"""What a search of the training text finds of the leaks, by `proctor exposure scan`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from planted_leaks.benchmarks import Benchmark
from planted_leaks.cells import NONE, Plan, Run
from planted_leaks.rewordings import write_files
from planted_leaks.training_texts import corpus, leaked_items
from proctor.domain.errors import BadInputError

#: The default of audits; the one for short questions; and near duplicates by the sentence encoder.
POLICIES: Final = ("article_8gram_80", "verbatim_item")
NEAR: Final = "embedding"


class Search(NamedTuple):
    """What one rule found of one run's leaks."""

    run: Run
    rule: str
    leaked: int
    found: int
    """Of the leaked items."""
    others: int
    """Found of the items that did not leak."""


def search(benchmark: Benchmark, run: Run, plan: Plan, folder: Path) -> Iterator[Search]:
    """Search everything that a run was trained on for the items of its benchmark."""
    write_files(benchmark, folder)
    texts = dict.fromkeys(f"{example.prompt}{example.answer}" for example in corpus(benchmark, run, plan))
    trained = folder / f"{run.name}.jsonl"
    trained.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    leaked = set() if run.leak == NONE else {
        benchmark.items[place].item.item_id for place in leaked_items(benchmark, run.seed)
    }  # fmt: skip
    for policy in POLICIES:
        yield _counted(run, policy, leaked, _exposed(_scan(folder, trained, "--policy", policy)))
    near = _scan(folder, trained, "--near", NEAR, "--near-sample", "0")
    yield _counted(run, f"near duplicates ({NEAR})", leaked, _near(near))


def _counted(run: Run, rule: str, leaked: set[str], exposed: set[str]) -> Search:
    return Search(run, rule, len(leaked), len(leaked & exposed), len(exposed - leaked))


def _scan(folder: Path, trained: Path, *options: str) -> Mapping[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "proctor", "exposure", "scan", "--items", str(folder / "items.jsonl"),
         "--corpus", f"tune={trained}", *options, "--format", "json"],
        env={**os.environ, "PROCTOR_HOME": str(folder / "home")}, capture_output=True, text=True,
    )  # fmt: skip
    if ran.returncode != 0:
        raise BadInputError(f"proctor exposure scan ended with {ran.returncode}: {ran.stderr.strip()}")
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found


def _exposed(document: Mapping[str, Any]) -> set[str]:
    return {
        item["item_id"]
        for item in document["items"]
        if any(stage["is_exposed"] for stage in item["stages"].values())
    }  # fmt: skip


def _near(document: Mapping[str, Any]) -> set[str]:
    return {
        item["item_id"]
        for item in document["items"]
        if any(found["broken"] is None for found in item.get("near", ()))
    }  # fmt: skip


def write_searches(path: Path, found: Iterable[Search]) -> None:
    """Keep what was found, a line a run and rule."""
    lines = [json.dumps({**one._asdict(), "run": list(one.run)}, sort_keys=True) for one in sorted(found)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_searches(path: Path) -> list[Search]:
    """Read what `write_searches` kept; nothing where there is no file."""
    if not path.exists():
        return []
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Search(Run(*row.pop("run")), **row) for row in rows]
