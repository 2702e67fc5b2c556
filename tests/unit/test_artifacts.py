"""The artifact store keeps content under its digest and says so when it cannot."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import StoreError
from proctor.domain.item import Item
from proctor.domain.manifest import ItemSet
from proctor.runtime.artifacts import LocalArtifacts, get_model, put_model


@given(data=st.binary(max_size=4096))
def test_what_was_stored_comes_back_under_its_sha256(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    store = LocalArtifacts(tmp_path_factory.getbasetemp() / "property")
    digest = store.put(data)
    assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert store.get(digest) == data


def test_the_same_content_is_one_object(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    assert store.put(b"x") == store.put(b"x")
    assert len(list(tmp_path.rglob("*.z"))) == 1


def test_a_missing_object_is_named_in_the_error(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    with pytest.raises(StoreError, match=digest):
        LocalArtifacts(tmp_path).get(digest)


@pytest.mark.parametrize("damage", [b"", b"not zlib", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_object_is_refused(tmp_path: Path, damage: bytes) -> None:
    store = LocalArtifacts(tmp_path)
    digest = store.put(b"content")
    next(tmp_path.rglob("*.z")).write_bytes(damage)
    with pytest.raises(StoreError, match=r"damaged|other content"):
        store.get(digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "sha256:../x", "sha256:" + "A" * 64, "sha256:abc"])
def test_only_a_digest_is_looked_up(tmp_path: Path, digest: str) -> None:
    with pytest.raises(StoreError, match="not the digest"):
        LocalArtifacts(tmp_path).get(digest)


def test_a_model_comes_back_equal(tmp_path: Path) -> None:
    items = ItemSet(items=(Item(item_id="1", question="ß \u2028?", choices=("a", "b"), target="b"),))
    store = LocalArtifacts(tmp_path)
    assert get_model(store, put_model(store, items), ItemSet) == items
