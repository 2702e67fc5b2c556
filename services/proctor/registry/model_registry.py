"""What a model registry is, and which one a URI names."""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import BadInputError, RegistryError
from proctor.domain.plugins import ExtensionPoint
from proctor.domain.registered_version import RegistryKind
from proctor.registry.promotion import HeldVersion
from proctor.registry.version_record import VersionRecord

#: URI scheme → the class of the registry that is spoken to under it, which is given the URI.
REGISTRIES: Final[ExtensionPoint[type]] = ExtensionPoint(
    "proctor.registries",
    "registry",
    type,
    {
        "http": "proctor.registry.mlflow_registry:MlflowRegistry",
        "https": "proctor.registry.mlflow_registry:MlflowRegistry",
        "file": "proctor.registry.folder_registry:FolderRegistry",
        "folder": "proctor.registry.folder_registry:FolderRegistry",
        "hf": "proctor.registry.hub_registry:HubRegistry",
        "huggingface": "proctor.registry.hub_registry:HubRegistry",
    },
)
#: What is opened under a scheme that nobody declares: it says what it takes.
_DEFAULT: Final = "http"


class RegistryUnavailableError(RegistryError):
    """The registry did not answer, or said that it cannot now: worth another attempt."""


class VersionGoneError(RegistryError):
    """The registry has no such version any more."""


@runtime_checkable
class ModelRegistry(Protocol):
    """A registry of model versions. Writing the same thing twice leaves the same state."""

    def ensure_version(self, model_id: str, digest: str) -> str:
        """The name of the model version with these weights; it is created when there is none.

        Raises:
            RegistryUnavailableError: the registry cannot be reached now.
            RegistryError: it refuses.
        """
        ...

    def write_decision(self, event: DecisionEvent, version: str) -> None:
        """Write a decision on a model version. An event may come again, and late.

        Raises:
            RegistryUnavailableError: the registry cannot be reached now.
            RegistryError: it refuses, or the version has other weights than the event says.
        """
        ...

    def close(self) -> None:
        """Give back the connections."""
        ...


@runtime_checkable
class EvidenceRegistry(ModelRegistry, Protocol):
    """A registry that is given all that stands of a version, and not its decision alone."""

    @property
    def kind(self) -> RegistryKind | None:
        """Under which name triggers ask for audits of its versions; None where they do not."""
        ...

    def write_version(self, record: VersionRecord, version: str) -> None:
        """Write what stands of a model version. The same may come again, and changes nothing then.

        Raises:
            RegistryUnavailableError: the registry cannot be reached now.
            VersionGoneError: it has no such version any more.
            RegistryError: it refuses, or the version has other weights than the decision is of.
        """
        ...


@runtime_checkable
class ReadableRegistry(Protocol):
    """A registry that says what it holds, which the promotion guard asks for. Not every plug-in's does."""

    def held(self, model: str, *, version: str | None = None, alias: str | None = None) -> HeldVersion:
        """What it says of a version, or of the one that an alias points at.

        Raises:
            RegistryUnavailableError: the registry cannot be reached now.
            RegistryError: it refuses, or there is no such version.
        """
        ...


def open_registry(uri: str) -> ModelRegistry:
    """The registry that a URI names by its scheme.

    Raises:
        RegistryError: no registry is spoken to under such a URI, or its plug-in does not bring what it should.
    """
    scheme = uri.partition(":")[0].lower()
    name = scheme if scheme in REGISTRIES else _DEFAULT
    try:
        kind = REGISTRIES.get(name)
    except BadInputError as error:
        raise RegistryError(str(error)) from error
    opened = kind(uri)
    if not isinstance(opened, ModelRegistry):
        raise RegistryError(
            f"the registry {name!r} of {REGISTRIES.origin(name)} is no model registry; have it keep the contract of "
            "proctor.registry.model_registry.ModelRegistry"
        )
    return opened


def kind_of(registry: ModelRegistry) -> RegistryKind | None:
    """Under which name triggers ask for audits of a registry's versions; None where they do not."""
    return registry.kind if isinstance(registry, EvidenceRegistry) else None
