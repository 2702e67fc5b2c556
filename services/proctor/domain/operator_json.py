"""JSON that the operator of a deployment writes, in a variable or in a file: read strictly, with one clear error."""

from __future__ import annotations

import json
from typing import Any

from proctor.domain.errors import BadInputError
from proctor.domain.problems import quoted


def operator_object(text: str, *, source: str, example: str) -> dict[str, Any]:
    """A JSON object of which no key stands twice, because Python would take the last without a word.

    Args:
        text: the JSON; empty for an object without members.
        source: the variable or file that it comes from, for messages.
        example: what such an object looks like.

    Raises:
        BadInputError: when it is none, with what to do.
    """
    if not text.strip():
        return {}
    try:
        found = json.loads(text, object_pairs_hook=_distinct)
    except _TwiceError as twice:
        raise BadInputError(f"{source}: {quoted(str(twice))} stands there twice; keep one of the two") from None
    except RecursionError:
        raise BadInputError(f"{source} is nested too deeply; write it like {example}") from None
    except ValueError as error:
        raise BadInputError(f"{source} is not JSON ({error}); write an object like {example}") from None
    if not isinstance(found, dict):
        raise BadInputError(f"{source} is not a JSON object; write one like {example}")
    return found


class _TwiceError(Exception):
    """A key that an object has twice."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found
