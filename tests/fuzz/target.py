"""What is fuzzed: a parser that meets foreign bytes, and what it may answer to them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One parser. Whatever it raises beyond its `refusals` is a finding, and so is an input that takes long."""

    name: str
    modules: tuple[str, ...]
    """The modules whose lines the run is to reach."""
    feed: Callable[[bytes], object]
    """Give the parser an input. Raises AssertionError where what was read breaks a promise."""
    seeds: Callable[[], Sequence[bytes]]
    """Inputs that are read, and a few that are just not."""
    refusals: tuple[type[Exception], ...] = ()
    """What the parser's documentation says that it raises."""
    words: tuple[bytes, ...] = ()
    """What the format is written in, for the mutator."""
    max_bytes: int = 1 << 14

    def try_out(self, data: bytes) -> bool:
        """Whether the input was taken; False where it was refused as it should be."""
        try:
            self.feed(data)
        except self.refusals:
            return False
        return True


@contextmanager
def as_file(data: bytes, suffix: str) -> Iterator[Path]:
    """The input as a file, for readers that take a path. In memory where the machine has such a folder."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="proctor-fuzz-", dir=memory if memory.is_dir() else None) as folder:
        path = Path(folder) / f"input{suffix}"
        path.write_bytes(data)
        yield path
