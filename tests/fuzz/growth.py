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
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tests.fuzz.mutation import ODD
from tests.fuzz.target import Target
from tests.fuzz.targets.every import TARGETS

LENGTH_BYTES = 400_000
#: And no more than this times what the fuzzer makes of a parser: texts that are slow to read, if steadily, would else
#: take an hour.
_TIMES_FUZZED = 10
#: Less than this is not looked into: the noise of a busy machine would be taken for growth.
_NOTICEABLE_S = 0.4
#: Twice the bytes may take twice the time, and caches that are too small for it a little more.
_GROWTH = 3.0
#: Of one input. Whoever does not come back is quadratic or worse.
_GIVE_UP_S = 30.0

Make = Callable[[int], bytes]
"""An input of about so many bytes."""


class Slow(NamedTuple):
    """An input whose time grows faster than its length."""

    target: str
    what: str
    half_s: float
    whole_s: float


class Found(NamedTuple):
    """What came of one target."""

    slow: list[Slow]
    tried: int
    of: int


def inputs(target: Target) -> Iterator[tuple[str, Make]]:
    """Long inputs, each with what it is made of."""
    seeds = list(target.seeds())[:3]
    for fragment in (one for one in dict.fromkeys((*target.words, *ODD)) if 0 < len(one) <= 64):
        yield f"{fragment!r} again and again", partial(_repeated, fragment)
        for place, seed in enumerate(seeds):
            for at in sorted({1, len(seed) // 2, len(seed) - 2, _within_text(seed)}):
                yield f"{fragment!r} again and again in seed {place} at {at}", partial(_within, seed, at, fragment)
    for place, seed in enumerate(seeds):
        yield f"seed {place} again and again", partial(_repeated, seed)


def _repeated(fragment: bytes, length: int) -> bytes:
    return (fragment * (length // max(len(fragment), 1) + 1))[:length]


def _within(seed: bytes, at: int, fragment: bytes, length: int) -> bytes:
    return seed[:at] + _repeated(fragment, length) + seed[at:]


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


def slow_inputs(target: Target, length: int = LENGTH_BYTES, seconds: float = float("inf")) -> Found:
    """The inputs whose time grows faster than their length: among all, or among those for which there was time."""
    every = list(inputs(target))
    # So that what there is time for is a fair part of them.
    random.Random(target.name).shuffle(every)
    slow, until_s = list[Slow](), time.monotonic() + seconds
    length = min(length, _TIMES_FUZZED * target.max_bytes)
    for tried, (what, make) in enumerate(every):
        if time.monotonic() > until_s:
            return Found(slow, tried, len(every))
        whole_s = _seconds(target, make(length))
        if whole_s < _NOTICEABLE_S:
            continue
        # Another text each time: some parsers keep what they have read.
        half_s = min(_seconds(target, make(length // 2 + more)) for more in range(2))
        whole_s = min(whole_s, _seconds(target, make(length + 1))) if whole_s < _GIVE_UP_S else whole_s
        # At twice the length too: twice the objects may also have the garbage collector look at all of them.
        if whole_s > _GROWTH * half_s and (
            whole_s > _GIVE_UP_S or _seconds(target, make(2 * length)) > _GROWTH * whole_s
        ):
            slow.append(Slow(target.name, what, half_s, whole_s))
    return Found(slow, len(every), len(every))


def _told(name: str, length: int, seconds: float, results: multiprocessing.SimpleQueue[Found]) -> None:
    results.put(slow_inputs(TARGETS[name], length, seconds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at every parser, each in a process of its own, and name what grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--length", type=int, default=LENGTH_BYTES, help="bytes of the inputs")
    parser.add_argument("--minutes", type=float, default=5.0, help="of new inputs for one parser; it says how many")
    chosen = parser.parse_args(arguments)
    bad = False
    for name in chosen.targets or TARGETS:
        results: multiprocessing.SimpleQueue[Found] = multiprocessing.SimpleQueue()
        seconds = chosen.minutes * 60
        process = multiprocessing.Process(target=_told, args=(name, chosen.length, seconds, results))
        started_s = time.monotonic()
        process.start()
        # One input is fed six times at most.
        process.join(seconds + 10 * _GIVE_UP_S)
        if process.is_alive():
            process.kill()
            print(f"{name}: one input takes longer than {10 * _GIVE_UP_S:g} s", flush=True)
            bad = True
            continue
        if process.exitcode != 0 or results.empty():
            print(f"{name}: ended with exit code {process.exitcode}", flush=True)
            bad = True
            continue
        found = results.get()
        took_s = time.monotonic() - started_s
        print(f"{name}: {len(found.slow)} grow, {found.tried} of {found.of} tried ({took_s:.0f} s)", flush=True)
        for one in sorted(found.slow, key=lambda slow: -slow.whole_s)[:8]:
            print(f"  {one.half_s:.2f} s, then {one.whole_s:.2f} s: {one.what[:150]}", flush=True)
        bad = bad or bool(found.slow)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
