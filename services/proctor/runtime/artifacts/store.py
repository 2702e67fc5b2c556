"""The artifact store: compressed objects under the digest of their content.

Prompts and completions live here; messages and the ledger hold digests only. Writing the same content twice is
one object, so a shard that is answered twice costs nothing and can change nothing.

A folder and a bucket hold the same bytes under the same names, so one can be copied to the other. An object is a zlib
stream, and its digest is over what it holds: which of the streams that hold it was written does not matter.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import ValidationError

from proctor.domain.base import Frozen
from proctor.domain.versions import reading, unknown_fields
from proctor.runtime.artifacts.objects import ForgettingStore
from proctor.runtime.progress import note_step

Model = TypeVar("Model", bound=Frozen)


class ArtifactStore(Protocol):
    """Content-addressed storage."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest.

        Raises StoreError when the store cannot be written to, and TooLargeError for what could not be read again.
        """
        ...

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified. Raises StoreError when missing, damaged or out of reach."""
        ...


class StoreOfArtifacts(ArtifactStore, ForgettingStore, Protocol):
    """What both kinds of store are; hardly anybody needs all of it."""


def put_model(store: ArtifactStore, model: Frozen) -> str:
    """Store a model as JSON and return its digest."""
    note_step()
    return store.put(model_bytes(model))


def model_bytes(model: Frozen) -> bytes:
    """A model as it is stored.

    Its fields have a fixed order, so equal models are one object. It is not RFC 8785: an item's metadata may hold
    integers that this form refuses.
    """
    return model.model_dump_json(by_alias=True).encode("utf-8")


def get_model(store: ArtifactStore, digest: str, kind: type[Model]) -> Model:
    """Load a model that `put_model` stored.

    Raises:
        StoreError: when it is not there, or damaged.
        NewerVersionError: when it has fields that only a newer Proctor knows.
    """
    note_step()
    try:
        return kind.model_validate_json(store.get(digest))
    except ValidationError as error:
        if unknown_fields(error):
            raise reading(f"{kind.__name__} {digest}", error) from None
        raise
