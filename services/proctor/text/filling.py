"""Instructions to a model with text put in, which is material there and never a part of the instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final

_PLACE: Final = re.compile(r"\{(\w+)\}")


def fill(paragraphs: Sequence[str], values: Mapping[str, object]) -> str:
    """Paragraphs, a blank line apart, with `{name}` replaced by the value of that name.

    One pass, so braces in a value stay what they are; a name without a value stays as it is written.
    """
    return _PLACE.sub(lambda match: str(values.get(match[1], match[0])), "\n\n".join(paragraphs))


def tag_for(text: str, name: str) -> str:
    """The name of the tags to put around a text: `name`, or with a number where the text has such tags itself."""
    used = set(re.findall(rf"</?\s*({re.escape(name)}(?:-[0-9]+)?)", text.casefold()))
    names = (f"{name}-{number}" if number else name for number in count())
    return next(free for free in names if free not in used)
