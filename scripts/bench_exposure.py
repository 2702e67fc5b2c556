#!/usr/bin/env python3
"""Time a scan of a corpus for a benchmark's items, beside other tools that look for n-grams.

The corpus is GSM8K's training problems, repeated with other numbers and names; the items are its test problems, and
others of the same words. Peers read the first megabytes of the same corpus with the 1,319 test problems, each in an
environment of its own that has it installed; their start and their index are not counted, and neither are ours.

  scripts/bench_exposure.py --gsm8k FOLDER
  scripts/bench_exposure.py --gsm8k FOLDER --janitor PYTHON --datatrove PYTHON --assay PYTHON
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text
from proctor.exposure.corpus import corpus_files
from proctor.exposure.index import Index, build_index
from proctor.exposure.items import Part, ScannedItem, read_items
from proctor.exposure.scanning import scan_corpus

N: Final = 13
FEW, MANY, MOST = 1_000, 51_319, 100_000
LEAST_MB_PER_S, LEAST_ON_TWO, MOST_GROWTH, MOST_BYTES = 60, 1.7, 1.5, 1_000_000_000
#: Tool → by how much its pace must be passed.
LEAST_OVER: Final = {"janitor": 20, "datatrove": 60, "assay": 10}
_PEER: Final = Path(__file__).parent / "benchmarking" / "exposure_peer.py"
_NUMBER: Final = re.compile(r"\d+")
_NAME: Final = re.compile(r"\b(?:James|John|Mary|Janet|Tom|Mark|Emily|Josh|Lisa|Jack)\b")
_NAMES: Final = ("Ana", "Boris", "Chen", "Dora", "Emeka", "Farid", "Greta", "Hana", "Ivo", "Jun")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsm8k", type=Path, required=True, metavar="FOLDER", help="with train.jsonl and test.jsonl")
    parser.add_argument("--megabytes", type=int, default=440, help="of the corpus (440)")
    parser.add_argument("--peer-megabytes", type=int, default=8, help="of it that peers read (8)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median is taken (5)")
    for tool in LEAST_OVER:
        parser.add_argument(f"--{tool}", metavar="PYTHON", help=f"an interpreter that has {tool}; without it, no peer")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(arguments)
    items = read_items(options.gsm8k / "test.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        corpus = write_corpus(options.gsm8k / "train.jsonl", Path(folder), options.megabytes * 1_000_000)
        figures, claims = _own(items, corpus, options.rounds)
        pace = next(figure.value for figure in figures if figure.name == f"{len(items):,} items, one process")
        slices = [_slice(corpus, Path(folder) / f"slice-{part}.jsonl", options.peer_megabytes, part) for part in (0, 1)]
        for tool, least in LEAST_OVER.items():
            if interpreter := getattr(options, tool):
                more, claim = _peer(tool, interpreter, options.gsm8k / "test.jsonl", slices, pace, least)
                figures += more
                claims.append(claim)
    write = as_json if options.format == "json" else as_text
    print(write(machine(["numba", "numpy", "msgspec"]), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def write_corpus(train: Path, folder: Path, size: int) -> Path:
    """GSM8K's training problems again and again, each time with other numbers and names."""
    rows = [json.loads(line) for line in train.read_text("utf-8").splitlines()]
    rng = random.Random(0)
    path, written = folder / "corpus.jsonl", 0
    with path.open("w", encoding="utf-8") as stream:
        while written < size:
            for row in rows:
                text = f"{row['question']}\n{row['answer']}"
                text = _NUMBER.sub(lambda found: str(rng.randrange(1000)), text)
                text = _NAME.sub(lambda found: rng.choice(_NAMES), text)
                written += stream.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    return path


def more_items(items: Sequence[ScannedItem], count: int) -> list[ScannedItem]:
    """So many items: these, and others made of their words."""
    rng = random.Random(1)
    words = [word for item in items for word in item.parts[Part.QUESTION].split()]
    made = [
        ScannedItem(f"made-{number}", {Part.QUESTION: " ".join(rng.choices(words, k=45))})
        for number in range(count - len(items))
    ]
    return [*items[:count], *made]


def _own(items: Sequence[ScannedItem], corpus: Path, rounds: int) -> tuple[list[Figure], list[Claim]]:
    megabytes = corpus.stat().st_size / 1e6
    indexed: dict[int, Index] = {}
    figures: list[Figure] = []
    for count in (FEW, len(items), MANY, MOST):
        begun_s = time.perf_counter()
        indexed[count] = build_index(more_items(items, count), N)
        figures.append(Figure(f"index of {count:,} items", time.perf_counter() - begun_s, "s"))
    files = corpus_files([str(corpus)])
    tasks: dict[str, Callable[[], object]] = {
        f"{count:,} items, one process": lambda index=index: scan_corpus(index, files)  # type: ignore[misc]
        for count, index in indexed.items()
    }
    for count in (len(items), MANY):
        tasks[f"{count:,} items, two processes"] = lambda index=indexed[count]: scan_corpus(index, files, workers=2)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            begun_s = time.perf_counter()
            task()
            if turn:
                seconds[name].append(time.perf_counter() - begun_s)
    paces = {name: megabytes / statistics.median(taken) for name, taken in seconds.items()}
    figures += [Figure(name, pace, "MB/s", f"{megabytes:,.0f} MB") for name, pace in paces.items()]
    taken_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures.append(Figure(f"memory, {MOST:,} items and all smaller indexes", taken_bytes / 1e6, "MB"))
    one, two = (f"{MANY:,} items, {what}" for what in ("one process", "two processes"))
    growth = paces[f"{FEW:,} items, one process"] / paces[f"{MOST:,} items, one process"]
    return figures, [
        Claim("MB/s in one process, 51,319 items", paces[one], LEAST_MB_PER_S, at_least=True),
        Claim("two processes over one, 51,319 items", paces[two] / paces[one], LEAST_ON_TWO, at_least=True),
        Claim("time with 10^5 items over 10^3", growth, MOST_GROWTH),
        Claim("bytes of memory with 10^5 items", taken_bytes, MOST_BYTES),
    ]


def _slice(corpus: Path, path: Path, megabytes: int, part: int) -> Path:
    """A few megabytes of the corpus, whole lines."""
    with corpus.open("rb") as source, path.open("wb") as target:
        source.seek(part * megabytes * 1_000_000)
        if part:
            source.readline()
        while target.tell() < megabytes * 500_000:
            target.write(source.readline())
    return path


def _peer(
    tool: str, interpreter: str, items: Path, slices: Sequence[Path], pace: float, least: float
) -> tuple[list[Figure], Claim]:
    megabytes = sum(path.stat().st_size for path in slices) / 1e6
    figures: list[Figure] = []
    for workers in (1, 2) if tool == "assay" else (1,):
        ran = subprocess.run(
            [interpreter, str(_PEER), tool, str(items), str(workers), *map(str, slices)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        said = json.loads(ran.stdout.strip().splitlines()[-1])
        name = tool if workers == 1 else f"{tool}, two processes"
        figures.append(
            Figure(name, megabytes / said["seconds"], "MB/s", f"{megabytes:.0f} MB, {said['flagged']:,} flagged")
        )
    return figures, Claim(f"one process over {tool}'s", pace / figures[0].value, least, at_least=True)


if __name__ == "__main__":
    sys.exit(main())
