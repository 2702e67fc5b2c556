"""Benchmarks that the operator of a deployment marks private, whatever a suite says of them.

A name is what a suite chooses to say; the digests find the benchmark under any other name, the file as it is, or any
one of its items in a file of another order, form or length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.domain.operator_json import operator_object
from proctor.domain.problems import quoted

#: The variable, for messages.
PRIVATE_BENCHMARKS: Final = "PROCTOR_PRIVATE_BENCHMARKS"
_EXAMPLE: Final = '{"names": ["clinical-*"], "datasets": ["sha256:…"], "items": ["sha256:…"]}'
_KEYS: Final = ("names", "datasets", "items")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_PATTERN: Final = 200
#: Patterns are tried one after another; digests are looked up.
MAX_PATTERNS: Final = 1_000


@dataclass(frozen=True)
class PrivateBenchmarks:
    """What marks a benchmark as private."""

    names: tuple[str, ...] = ()
    """Patterns of benchmark names and hub ids, with `*`, `?` and `[…]`, whatever their case."""
    datasets: frozenset[str] = frozenset()
    """Digests of files of items."""
    items: frozenset[str] = frozenset()
    """Digests of what single items ask (`proctor.text.sameness`)."""
    file: str = ""
    """The file that all of it was read from; empty where it stood in the variable."""

    def __bool__(self) -> bool:
        return bool(self.names or self.datasets or self.items)

    def by_name(self, *names: str | None) -> str | None:
        """The pattern that one of the names meets; None where none does."""
        folded = [name.casefold() for name in names if name is not None]
        return next((one for one in self.names for name in folded if fnmatchcase(name, one.casefold())), None)

    def by_item(self, digests: Iterable[str]) -> bool:
        """Whether one of the items is marked. Nothing is gone through where no item is."""
        return bool(self.items) and any(digest in self.items for digest in digests)

    def written(self) -> str:
        """What tells a child process the same. A file goes by its path: a variable holds no more than 128 KiB."""
        if self.file:
            return f"@{self.file}"
        lists = {"names": list(self.names), "datasets": sorted(self.datasets), "items": sorted(self.items)}
        return json.dumps({key: values for key, values in lists.items() if values}) if any(lists.values()) else ""


NOTHING_MARKED: Final = PrivateBenchmarks()


def parse_private_benchmarks(text: str, *, source: str, file: str = "") -> PrivateBenchmarks:
    """Read which benchmarks are private: an object of names, digests of files and digests of items.

    Raises:
        BadInputError: with the key, the entry and what to do.
    """
    found = operator_object(text, source=source, example=_EXAMPLE)
    if unknown := sorted(set(found) - set(_KEYS)):
        raise BadInputError(f"{source}: {quoted(unknown[0])} is an unknown key; known: {', '.join(_KEYS)}")
    lists: dict[str, Any] = {key: found.get(key, []) for key in _KEYS}
    for key, values in lists.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadInputError(f"{source}: {key} is not a list of texts; write it like {_EXAMPLE}")
    if len(lists["names"]) > MAX_PATTERNS:
        raise BadInputError(f"{source}: names has {len(lists['names']):,} patterns; write at most {MAX_PATTERNS:,}")
    for pattern in lists["names"]:
        if not 0 < len(pattern) <= _MAX_PATTERN:
            raise BadInputError(f"{source}: names holds {quoted(pattern)}; write 1 to {_MAX_PATTERN} characters")
    for key in ("datasets", "items"):
        odd = next((value for value in lists[key] if not _DIGEST.fullmatch(value)), None)
        if odd is not None:
            raise BadInputError(
                f"{source}: {key} holds {quoted(odd)}, which is no digest; write sha256: and 64 hex digits, as "
                "`proctor gateway mark SUITE` prints them"
            )
    return PrivateBenchmarks(tuple(lists["names"]), frozenset(lists["datasets"]), frozenset(lists["items"]), file)
