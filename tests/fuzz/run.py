"""`python -m tests.fuzz.run`: every parser of foreign bytes under a coverage-guided fuzzer, one process a core.

Findings stand in the output folder, each with the input that made it and what was said. Exit status 1 when there is
one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets.every import TARGETS
from tests.support import REPOSITORY

#: Of one input. A second is twenty times what a parser may hold an event loop, on a machine that is busy with others.
_SLOW_S = 5
_MEMORY_MIB = 1024
_FINDINGS = ("crash-", "timeout-", "oom-", "leak-")
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_COVERED = re.compile(r"cov: (\d+)")


@dataclass(frozen=True)
class Result:
    """What became of one target."""

    target: str
    inputs: int
    corpus: int
    """Inputs that reached something new."""
    reached: int
    lines: int
    """Lines of function bodies in the target's modules: those reached, and all."""
    seconds: float
    findings: tuple[str, ...]


def fuzz(target: Target, folder: Path, *, seconds: int, seed: int) -> Result:
    """Fuzz one target for so long. `folder` gets corpus, findings and log."""
    corpus, log = folder / target.name / "corpus", folder / target.name / "log"
    corpus.mkdir(parents=True, exist_ok=True)
    for place, data in enumerate(target.seeds()):
        (corpus / f"seed-{place:03d}").write_bytes(data)
    words = folder / target.name / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    options = [
        str(corpus), f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={target.max_bytes}", f"-dict={words}",
        f"-timeout={_SLOW_S}", f"-rss_limit_mb={_MEMORY_MIB}", f"-artifact_prefix={folder / target.name}/",
        "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    started = time.monotonic()
    with log.open("wb") as output:
        code = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.one", target.name, *options],
            cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT,
        ).returncode  # fmt: skip
    took_s = time.monotonic() - started
    said = log.read_text("utf-8", "replace")
    found = sorted(path.name for path in (folder / target.name).iterdir() if path.name.startswith(_FINDINGS))
    if code != 0 and not found:
        found = [f"exit code {code}: {said.strip().splitlines()[-1][:200] if said.strip() else 'nothing said'}"]
    reached = _reached(target, corpus)
    counted = _RUNS.findall(said)
    return Result(
        target=target.name,
        inputs=int(counted[-1]) if counted else _inputs_before_the_finding(said),
        corpus=sum(1 for _ in corpus.iterdir()),
        reached=reached["reached"],
        lines=reached["lines"],
        seconds=round(took_s, 1),
        findings=tuple(found),
    )


def _inputs_before_the_finding(said: str) -> int:
    counts = re.findall(r"^#(\d+)\s", said, re.MULTILINE)
    return int(counts[-1]) if counts else 0


def _reached(target: Target, corpus: Path) -> dict[str, int]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.reached", target.name, str(corpus)],
        cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        return {"reached": 0, "lines": 0}
    counts: dict[str, int] = json.loads(run.stdout)
    return counts


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def table(results: Sequence[Result]) -> str:
    """The results as the Markdown table of docs/security.md."""
    lines = ["| parser | inputs tried | lines reached | found |", "|---|---|---|---|"]
    for one in results:
        share = f"{one.reached} of {one.lines} ({100 * one.reached / max(one.lines, 1):.0f} %)"
        lines.append(f"| `{one.target}` | {one.inputs:,} | {share} | {len(one.findings) or 'nothing'} |")
    return "\n".join(lines)


def main() -> int:
    """Fuzz what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="which parsers; all by default")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS") or 120), help="a parser")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parsers side by side")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "fuzz")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    targets = [TARGETS[name] for name in arguments.targets or TARGETS]
    about_s = len(targets) * arguments.seconds / arguments.jobs
    print(f"{len(targets)} parsers, {arguments.seconds} s each: about {about_s / 60:.0f} min", file=sys.stderr)

    def one(target: Target) -> Result:
        result = fuzz(target, arguments.folder, seconds=arguments.seconds, seed=arguments.seed)
        said = ", ".join(result.findings) or "nothing found"
        print(f"{target.name}: {result.inputs:,} inputs in {result.seconds:.0f} s, {said}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(one, targets))
    if arguments.format == "json":
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        print(table(results))
    return 1 if any(result.findings for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
