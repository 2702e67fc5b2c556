"""An object of an artifact store as bytes: its name, its compressed form, its bounds. Pure."""

from __future__ import annotations

from proctor.domain.canonical import FULL_DIGEST, bytes_digest
from proctor.domain.errors import StoreError, TooLargeError
from proctor.runtime.artifacts.compression import compressed, inflated

#: What one object may hold. A shard's completions are the largest that are many: 16 MiB of answers, which are 96 MiB
#: where JSON has to escape each byte of them (`proctor.router.pools.packs`). Whoever reads an object has it twice for a
#: moment, as it is inflated, and that has to fit into a worker of one GiB.
MAX_OBJECT_BYTES = 1 << 28


def object_name(digest: str) -> str:
    """The name of a digest's object below the store's root, e.g. `2c/2cf2….z`.

    Raises:
        StoreError: for anything but a whole digest, so that nothing else is ever looked up.
    """
    if not FULL_DIGEST.fullmatch(digest):
        raise StoreError(f"{digest[:100]!r} is not the digest of an artifact")
    name = digest.removeprefix("sha256:")
    return f"{name[:2]}/{name}.z"


def check_size(data: bytes) -> None:
    """Refuse what could not be read again.

    Raises:
        TooLargeError: for more than MAX_OBJECT_BYTES.
    """
    if len(data) > MAX_OBJECT_BYTES:
        raise TooLargeError(
            f"an artifact of {len(data):,} bytes is not stored, because no more than {MAX_OBJECT_BYTES:,} can be read "
            "again; lower dataset_config.sample_size or perturbation_config.num_variants_per_item"
        )


def max_stored_bytes() -> int:
    """Bytes that an object takes at most: data that cannot be compressed grows by less than a 256th."""
    return MAX_OBJECT_BYTES + (MAX_OBJECT_BYTES >> 8) + 1024


def packed(data: bytes) -> bytes:
    """The bytes of an object that holds `data`."""
    return compressed(data)


def unpacked(stored: bytes | memoryview, digest: str, *, where: str) -> bytes:
    """What an object holds, verified against its digest.

    Args:
        stored: the object's bytes.
        where: the store, for the message.

    Raises:
        StoreError: when the object is not what its digest says.
    """
    if len(stored) > max_stored_bytes():
        raise StoreError(f"artifact {digest} in {where} is damaged: it has more than {max_stored_bytes():,} bytes")
    try:
        data = inflated(stored, MAX_OBJECT_BYTES)
    except ValueError as error:
        raise StoreError(f"artifact {digest} in {where} is damaged: {error}") from None
    if bytes_digest(data) != digest:
        raise StoreError(f"artifact {digest} in {where} holds other content than its digest says")
    return data
