"""One row as a JSON object: each key once, no number that JSON does not know; what else stands there is a fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from proctor.domain.members import repeated_name
from proctor.formats.faults import Faults, shown


class _DuplicateKeyError(ValueError):
    pass


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _as_it_is(values: dict[str, Any]) -> Any:
    return values


def json_object(
    line: bytes,
    position: int,
    faults: Faults,
    *,
    constant: Callable[[str], Any] = _no_constant,
    made: Callable[[dict[str, Any]], Any] = _as_it_is,
) -> dict[str, Any] | None:
    """The object that a line holds; None, and a fault, where it holds none.

    Args:
        line: the line.
        position: where it stands, for faults.
        faults: where they are noted.
        constant: what to make of NaN and the infinities, which are no JSON.
        made: what to make of every object within.
    """

    def unique(pairs: list[tuple[str, Any]]) -> Any:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise _DuplicateKeyError(f"the key {shown(repeated_name(pairs))} stands twice; keep one")
        return made(values)

    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_constant=constant)
    except UnicodeDecodeError as error:
        faults.add(position, f"byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8; convert the file")
    except _DuplicateKeyError as error:
        faults.add(position, str(error))
    except json.JSONDecodeError as error:
        start = shown(line[:60].decode("utf-8", "replace"))
        faults.add(position, f"not JSON at column {error.colno}: {error.msg}: {start}")
    except (ValueError, RecursionError) as error:
        faults.add(position, f"not JSON that can be read: {error}")
    else:
        if isinstance(value, dict):
            return value
        faults.add(position, f"a JSON object is needed, not {shown(value)}")
    return None
