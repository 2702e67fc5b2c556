"""A dataset that is rotated, on disk: items that are asked, items that are held out, items that are spent, the state.

The state is written first and says what the files are to hold; the items themselves are in one of the three files at
any time, so what a crash left half done is finished by the next who opens it.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.rotation import POOL, RETIRED, STATE_SUFFIX, Held, Rotation
from proctor.runtime.files import write_atomic
from proctor.runtime.rotations import read_rotation
from proctor.studies.datasets.item_files import SUFFIX, read_items_or_none, written_items


class Files(NamedTuple):
    """Where the parts of a dataset lie: beside the file of items that suites name."""

    active: Path
    pool: Path
    retired: Path
    state: Path
    lock: Path

    @classmethod
    def of(cls, items: Path) -> Files:
        """The files beside a file of items. Raises BadInputError where its name is not FILE.jsonl."""
        if items.suffix != SUFFIX:
            raise BadInputError(f"{items} does not end in {SUFFIX}, the form in which items are written")
        stem = items.name.removesuffix(SUFFIX)

        def beside(suffix: str) -> Path:
            return items.with_name(stem + suffix)

        return cls(
            items, beside(POOL + SUFFIX), beside(RETIRED + SUFFIX), beside(STATE_SUFFIX), beside(".rotation.lock")
        )


class Dataset:
    """A dataset that is held open by nobody else; see `opened`."""

    def __init__(self, files: Files, state: Rotation, bodies: Mapping[str, Item]) -> None:
        self.files, self.state, self._bodies = files, state, dict(bodies)

    def items(self, ids: Iterable[str]) -> list[Item]:
        """The items of these ids."""
        return [self._bodies[one] for one in ids]

    def keep(self, state: Rotation, new: Iterable[Item] = ()) -> None:
        """Write the state, and the files as it says. `new` are items that it has in addition."""
        self._bodies |= {item.item_id: item for item in new}
        write_atomic(self.files.state, state.model_dump_json(indent=1).encode() + b"\n")
        self.state = state
        self._write()

    def _write(self) -> None:
        # An item is in two files for a moment, and never in none.
        self._lay(self.files.retired, self.state.retired)
        self._lay(self.files.active, self.state.active)
        self._lay(self.files.pool, self.state.pool)

    def _lay(self, path: Path, held: Iterable[Held]) -> None:
        data = written_items(self.items(one.item_id for one in held))
        if (path.read_bytes() if path.is_file() else b"") != data:
            write_atomic(path, data)

    def finish(self) -> None:
        """Bring the files to what the state says."""
        self._write()


def create(files: Files, state: Rotation, items: Iterable[Item]) -> None:
    """Write a new dataset. What stands there is overwritten."""
    Dataset(files, state, {}).keep(state, items)


@contextmanager
def opened(items: Path) -> Iterator[Dataset]:
    """Open a dataset alone: another who opens it meanwhile waits.

    Raises:
        BadInputError: where it has no state, or items that the state names are in none of its files.
    """
    files = Files.of(items)
    if not files.state.is_file():
        raise BadInputError(
            f"{files.state} is not there, so {items} is not rotated; `proctor dataset new … --held-out N` makes a "
            f"dataset "
            "that is"
        )
    with files.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read_rotation(files.state)
        bodies = {
            item.item_id: item
            for path in (files.pool, files.active, files.retired)
            for item in read_items_or_none(path)
        }
        missing = [one.item_id for one in (*state.active, *state.pool, *state.retired) if one.item_id not in bodies]
        if missing:
            raise BadInputError(
                f"{files.state} names {len(missing):,} items that are in none of {files.active.name}, "
                f"{files.pool.name} and "
                f"{files.retired.name} (first: {missing[0]!r}); bring the files back as they were"
            )
        dataset = Dataset(files, state, bodies)
        dataset.finish()
        yield dataset
