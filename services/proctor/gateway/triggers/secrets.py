"""The secrets of registries' webhooks, as the operator gives them: in a variable, or in a file that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import SecretStr

from proctor.domain.errors import BadInputError
from proctor.domain.registered_version import RegistryKind
from proctor.registry.webhooks.receiver import MAX_SECRETS
from proctor.runtime.operator_text import operator_text

#: Whoever may guess at a secret a thousand times a second for a year has 10¹⁰ guesses: 16 drawn letters are beyond.
MIN_CHARACTERS: Final = 16
MAX_CHARACTERS: Final = 1_000
_VARIABLES: Final = {
    RegistryKind.MLFLOW: "PROCTOR_GATEWAY_MLFLOW_SECRETS",
    RegistryKind.HUGGINGFACE: "PROCTOR_GATEWAY_HUGGINGFACE_SECRETS",
}


class WebhookSecrets(NamedTuple):
    """Those that are active, by registry; two while one takes the other's place."""

    by_registry: Mapping[RegistryKind, tuple[SecretStr, ...]] = {}

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> WebhookSecrets:
        """The secrets of PROCTOR_GATEWAY_MLFLOW_SECRETS and PROCTOR_GATEWAY_HUGGINGFACE_SECRETS, one a line.

        Raises:
            BadInputError: for more than two, or one that could be guessed. No message holds any of them.
        """
        return cls({registry: _read(variable, environ.get(variable, "")) for registry, variable in _VARIABLES.items()})


def _read(variable: str, value: str) -> tuple[SecretStr, ...]:
    said = operator_text(variable, value)
    lines = [line.strip() for line in said.text.splitlines() if line.strip()]
    if len(lines) > MAX_SECRETS:
        raise BadInputError(f"{said.source} has {len(lines)} lines: give one secret a line, and {MAX_SECRETS} at most")
    for line in lines:
        if not MIN_CHARACTERS <= len(line) <= MAX_CHARACTERS or len(set(line)) < MIN_CHARACTERS // 2:
            raise BadInputError(
                f"{said.source} holds a secret that could be guessed: draw one of {MIN_CHARACTERS} to {MAX_CHARACTERS} "
                "characters, e.g. with `proctor gateway token`"
            )
    return tuple(map(SecretStr, lines))
