"""Either implementation writes zlib's format, and reads what the other wrote."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

NAME = "proctor.runtime.artifacts.compression"


def _with(present: bool) -> ModuleType:
    """The module as it is where isal is installed or where it is not; the one that the others use stays what it is."""
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        if not present:
            patch.setitem(sys.modules, "isal", None)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["isal", "zlib"])
def codec(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    if request.param == "isal":
        pytest.importorskip("isal", reason="isal has no wheel for this machine")
    module = _with(request.param == "isal")
    assert hasattr(module, "isal_zlib") == (request.param == "isal")
    yield module
    assert sys.modules.get(NAME) is not module


@given(data=st.binary(max_size=4096))
def test_what_one_wrote_both_read(codec: ModuleType, data: bytes) -> None:
    stored = codec.compressed(data)
    assert zlib.decompress(stored) == data
    assert codec.inflated(zlib.compress(data, 9), len(data) + 1) == data
    assert codec.inflated(memoryview(stored), len(data) + 1) == data


def test_no_more_is_inflated_than_was_asked_for(codec: ModuleType) -> None:
    assert codec.inflated(codec.compressed(bytes(100_000)), 1000) == bytes(1000)


@pytest.mark.parametrize("stored", [b"not zlib", b"\x78\x9c\xff\xff\xff\xff", zlib.compress(b"x" * 99)[:-1] + b"\x00"])
def test_what_is_not_in_the_format_is_refused(codec: ModuleType, stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.inflated(stored, 1000)


def test_text_takes_a_fraction_of_its_room(codec: ModuleType) -> None:
    assert len(codec.compressed(b"What is the capital of France? " * 500)) < 500
