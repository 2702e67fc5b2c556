"""What a registry says of its versions, for whoever starts audits of them."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple, Protocol

from proctor.domain.registered_version import (
    MAX_NAME_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    RegisteredVersion,
    RegistryKind,
)
from proctor.registry.mlflow_client import ModelVersion, RegistryRefusedError, UsesMlflow
from proctor.registry.model_registry import VersionGoneError

#: MLflow keeps prompts beside models, and marks them so.
_PROMPT_TAG: Final = "mlflow.prompt.is_prompt"


class VersionPage(NamedTuple):
    """Versions that were created since a time, and the token of the next page; empty at the end."""

    versions: tuple[RegisteredVersion, ...]
    token: str


class VersionSource(Protocol):
    """A registry that can be asked for a version.

    Raises RegistryUnavailableError where it does not answer, and VersionGoneError for a version that it does not have.
    """

    def look_up(self, version: RegisteredVersion) -> RegisteredVersion:
        """The version with all that the registry says of it."""

    def close(self) -> None:
        """Give back the connections."""


class MlflowVersions(UsesMlflow):
    """The versions of one MLflow server."""

    def look_up(self, version: RegisteredVersion) -> RegisteredVersion:
        """See `VersionSource`."""
        try:
            return _told(self._client.version(version.name, version.version))
        except RegistryRefusedError as error:
            if error.code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                raise VersionGoneError(str(error)) from error
            raise

    def page(self, since: datetime, token: str = "") -> VersionPage:
        """Versions of all models, the newest first, as far as they were created since a time.

        Raises:
            RegistryRefusedError: for a token that the registry does not take any more.
        """
        since_ms, page = since.timestamp() * 1000, self._client.newest(token)
        recent = [one for one in page.versions if one.created_ms >= since_ms]
        wanted = (one for one in recent if one.ready and _PROMPT_TAG not in one.tags)
        whole = len(recent) == len(page.versions)
        return VersionPage(tuple(_told(one) for one in wanted if _is_sane(one)), page.token if whole else "")


def _is_sane(one: ModelVersion) -> bool:
    # Who holds a registry to its own limits has no such versions.
    return 0 < len(one.name) <= MAX_NAME_CHARACTERS and "\0" not in one.name and len(one.tags) <= MAX_TAGS


def _told(one: ModelVersion) -> RegisteredVersion:
    return RegisteredVersion(
        registry=RegistryKind.MLFLOW,
        name=one.name,
        version=one.version,
        tags={key: value[:MAX_TAG_CHARACTERS] for key, value in one.tags.items()},
        source=one.source[:MAX_TAG_CHARACTERS],
        run_id=one.run_id[:MAX_TAG_CHARACTERS],
    )
