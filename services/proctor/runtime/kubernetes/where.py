"""In which namespaces workloads are told of decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from proctor.domain.errors import BadInputError
from proctor.runtime.kubernetes.lease_name import is_label

EVENTS: Final = "PROCTOR_KUBERNETES_EVENTS"
#: On namespaces that asked for the gate.
NAMESPACE_LABEL: Final = "proctor.dev/admission"


class Where(NamedTuple):
    """In which namespaces workloads are looked for."""

    named: tuple[str, ...] = ()
    """Empty for all that have the label."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self | None:
        """Where the operator lets decisions be told; None for nowhere.

        Raises:
            BadInputError: the variable is neither 1 nor names of namespaces.
        """
        said = environ.get(EVENTS, "")
        if said in ("", "0"):
            return None
        if said == "1":
            return cls()
        names = tuple(dict.fromkeys(name.strip() for name in said.split(",") if name.strip()))
        if not names or not all(map(is_label, names)):
            raise BadInputError(
                f"{EVENTS} is {said[:80]!r}, but must be 1 for the namespaces with the label {NAMESPACE_LABEL}, or "
                "names of namespaces with commas between them"
            )
        return cls(names)
