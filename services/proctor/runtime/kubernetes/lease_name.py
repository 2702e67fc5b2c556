"""The name of the Lease that a component's processes stand for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from proctor.domain.errors import BadInputError

#: A namespace is a DNS label; a Lease's name one or more of them.
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMED: Final = re.compile(rf"({_LABEL})/({_LABEL}(?:\.{_LABEL})*)")
_MAX_CHARACTERS: Final = 253
#: Of one component of a deployment. It is none of the settings that a process hands on: its children stand for nothing.
LEADER_LEASE: Final = "PROCTOR_LEADER_LEASE"


def is_label(text: str) -> bool:
    """Whether it can be a namespace's name."""
    return re.fullmatch(_LABEL, text) is not None


class LeaseName(NamedTuple):
    """`NAMESPACE/NAME`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self | None:
        """The Lease of this component; None where everybody does everything.

        Raises:
            BadInputError: what is said names none.
        """
        said = environ.get(LEADER_LEASE)
        return cls.parse(said) if said else None

    @classmethod
    def parse(cls, said: str) -> Self:
        """A name as it is written.

        Raises:
            BadInputError: it is none.
        """
        found = _NAMED.fullmatch(said)
        if found is None or len(said) > _MAX_CHARACTERS:
            raise BadInputError(
                f"{LEADER_LEASE} is {said[:80]!r}, but must be NAMESPACE/NAME, like proctor/proctor-router"
            )
        namespace, _, name = said.partition("/")
        return cls(namespace, name)
