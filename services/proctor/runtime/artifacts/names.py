"""The names of objects in an artifact store: `2c/2cf2….z` for the digest `sha256:2cf2…`."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})\.z")


def is_object_name(name: str) -> bool:
    """Whether an object of that name is of the store's making."""
    return _NAME.fullmatch(name) is not None


def digest_of(name: str) -> str:
    """The digest whose object has this name."""
    return "sha256:" + name[3:-2]
