"""Naming a version in the model registry: NAME@ALIAS or NAME/VERSION."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from proctor.cli.terminal import clean
from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.runtime.settings import Settings

_REFERENCE: Final = re.compile(
    r"(?:models:/)?(?P<model>[^@]+?)(?:@(?P<alias>[^@/]+)|/(?P<version>[0-9]+|[0-9a-f]{12}|[0-9a-f]{40}))"
)


class Reference(NamedTuple):
    """A version as a person names it."""

    model: str
    alias: str | None
    version: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read NAME@ALIAS or NAME/VERSION; raises BadInputError for anything else."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise BadInputError(
                f"{clean(text[:200])!r} names no version: give NAME@ALIAS or NAME/VERSION, e.g. my-model@champion"
            )
        return cls(match["model"], match["alias"], match["version"])


def registry_of(settings: Settings) -> str:
    """The registry that settings name; raises BadInputError where they name none."""
    if settings.registry_uri is None:
        raise BadInputError(
            "no registry is known here: name it with --registry or PROCTOR_REGISTRY_URI, or start the stack of this "
            "home with `proctor up`"
        )
    return settings.registry_uri
