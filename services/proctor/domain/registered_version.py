"""A version of a model in a registry, as an event or the registry itself tells of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import Field

from proctor.domain.base import Frozen

#: What Proctor's own tags begin with; whoever writes them is not told of them again.
OWN_TAGS: Final = "proctor."
MODEL_DIGEST_TAG: Final = "proctor.model_digest"
MODEL_ID_TAG: Final = "proctor.model_id"
#: The source of versions that the registry writer created for an audit that ran already.
OWN_SOURCE: Final = "proctor:"
#: MLflow takes 250 characters, the Hub 200.
MAX_NAME_CHARACTERS: Final = 512
#: A number, or a commit.
MAX_VERSION_CHARACTERS: Final = 128
#: Tags of one version that are kept, and their size: MLflow takes keys of 250 and values of 8,000 characters.
MAX_TAGS: Final = 200
MAX_TAG_CHARACTERS: Final = 8_000


class RegistryKind(StrEnum):
    """Where versions are registered."""

    MLFLOW = "mlflow"
    HUGGINGFACE = "huggingface"


class RegisteredVersion(Frozen):
    """A version, and what is known of it."""

    registry: RegistryKind
    name: str = Field(min_length=1, max_length=MAX_NAME_CHARACTERS)
    version: str = Field(min_length=1, max_length=MAX_VERSION_CHARACTERS)
    tags: dict[str, str] | None = None
    """None where they are not known, and the registry is to be asked."""
    source: str = ""
    """Where its weights are, as the registry has it."""
    run_id: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the registry writer made it, for weights that were audited already."""
        return self.source.startswith(OWN_SOURCE)


def registered_name(model_id: str) -> str:
    """The registered model's name for a model id.

    MLflow refuses '/' in names. A model id never holds '~', so writing '~' for '/' keeps different ids apart;
    the tag `proctor.model_id` is the way back.
    """
    return model_id.replace("/", "~")
