"""`python -m tests.fuzz.growth`: no parser takes more than its share of time for a long input.

A fuzzer's inputs are short, and what is quadratic shows in long ones. Here each fragment that a format is written in,
and each that breaks parsers, is repeated to a length, by itself and inside of a seed, and fed. An input that takes long
is fed again at half its length and at twice: what takes four times as long for twice the bytes, both times, is a
finding, however quick.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.fuzz.mutation import ODD
from tests.fuzz.target import Target
from tests.fuzz.targets.every import TARGETS

LENGTH_BYTES = 400_000
#: Less than this is not looked into: the noise of a busy machine would be taken for growth.
_NOTICEABLE_S = 0.4
#: Twice the bytes may take twice the time, and caches that are too small for it a little more.
_GROWTH = 3.0
#: Of one input. Whoever does not come back is quadratic or worse.
_GIVE_UP_S = 30.0


class Slow(NamedTuple):
    """An input whose time grows faster than its length."""

    target: str
    what: str
    half_s: float
    whole_s: float


def inputs(target: Target, length: int) -> Iterator[tuple[str, bytes]]:
    """Long inputs, each with what it is made of."""
    fragments = [fragment for fragment in dict.fromkeys((*target.words, *ODD)) if 0 < len(fragment) <= 64]
    for fragment in fragments:
        many = (fragment * (length // len(fragment) + 1))[:length]
        yield f"{fragment!r} again and again", many
        for place, seed in enumerate(list(target.seeds())[:3]):
            for at in sorted({1, len(seed) // 2, len(seed) - 2, _within_text(seed)}):
                yield f"{fragment!r} again and again in seed {place} at {at}", seed[:at] + many + seed[at:]
    for place, seed in enumerate(list(target.seeds())[:3]):
        yield f"seed {place} again and again", (seed * (length // max(len(seed), 1) + 1))[:length]


def _within_text(seed: bytes) -> int:
    """A place between the quotes of a text, if there is one: what stands there is content and no structure."""
    quote = seed.rfind(b'"')
    return max(0, quote - 1 if quote > 0 else len(seed) // 3)


def _seconds(target: Target, data: bytes) -> float:
    """Processor time, that of child processes with it: a Parquet file is read by one."""
    started_s = _used_s()
    target.try_out(data)
    return _used_s() - started_s


def _used_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def slow_inputs(target: Target, length: int = LENGTH_BYTES) -> list[Slow]:
    """The inputs whose time grows faster than their length."""
    found = []
    lengths = zip(*(inputs(target, of) for of in (length // 2, length, 2 * length)), strict=True)
    for (_, half), (what, whole), (_, double) in lengths:
        whole_s = _seconds(target, whole)
        if whole_s < _NOTICEABLE_S:
            continue
        half_s = min(_seconds(target, half) for _ in range(2))
        whole_s = min(whole_s, _seconds(target, whole)) if whole_s < _GIVE_UP_S else whole_s
        # Twice, because twice the objects may also be what makes the garbage collector look at them all.
        if whole_s > _GROWTH * half_s and (whole_s > _GIVE_UP_S or _seconds(target, double) > _GROWTH * whole_s):
            found.append(Slow(target.name, what, half_s, whole_s))
    return found


def _told(name: str, length: int, results: multiprocessing.SimpleQueue[list[Slow]]) -> None:
    results.put(slow_inputs(TARGETS[name], length))


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at every parser, each in a process of its own, and name what grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--length", type=int, default=LENGTH_BYTES, help="bytes of the inputs")
    parser.add_argument("--minutes", type=float, default=5.0, help="what one parser may take")
    chosen = parser.parse_args(arguments)
    bad = False
    for name in chosen.targets or TARGETS:
        results: multiprocessing.SimpleQueue[list[Slow]] = multiprocessing.SimpleQueue()
        process = multiprocessing.Process(target=_told, args=(name, chosen.length, results))
        started_s = time.monotonic()
        process.start()
        process.join(chosen.minutes * 60)
        if process.is_alive():
            process.kill()
            print(f"{name}: not done after {chosen.minutes:g} minutes", flush=True)
            bad = True
            continue
        if process.exitcode != 0 or results.empty():
            print(f"{name}: ended with exit code {process.exitcode}", flush=True)
            bad = True
            continue
        found = results.get()
        print(f"{name}: {len(found)} grow ({time.monotonic() - started_s:.0f} s)", flush=True)
        for one in sorted(found, key=lambda slow: -slow.whole_s)[:8]:
            print(f"  {one.half_s:.2f} s, then {one.whole_s:.2f} s: {one.what[:150]}", flush=True)
        bad = bad or bool(found)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
