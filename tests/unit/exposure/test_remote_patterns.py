"""Globs of keys and paths match what globs of files do."""

from __future__ import annotations

import glob
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.exposure.remote.patterns import folder_of, is_pattern, matcher

NAMES = ["a.jsonl", "b.jsonl.gz", "x/a.jsonl", "x/y/a.jsonl", "x/y/z/b.jsonl", "xy/a.jsonl", "x/ab", "y/[a].jsonl"]
PART = st.lists(st.sampled_from(["*", "?", "[ab]", "[!a]", "a", "x", "y", ".jsonl"]), min_size=1, max_size=3).map(
    "".join
)
PATTERN = st.lists(st.one_of(PART, st.just("**")), min_size=1, max_size=4).map("/".join)


@given(PATTERN)
@settings(max_examples=300)
def test_a_pattern_matches_the_names_that_glob_finds(pattern: str) -> None:
    parts = pattern.split("/")
    if any("**" in part and part != "**" for part in parts):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        found = glob.glob(pattern, root_dir=folder, recursive=True)
        # A file with a slash behind it, as glob finds for `file/**`, is no file.
        files = sorted({os.path.normpath(one) for one in found if os.path.isfile(os.path.join(folder, one))})
    is_wanted = matcher(pattern)
    assert sorted(filter(is_wanted, NAMES)) == files


@given(PATTERN, st.sampled_from(NAMES))
def test_what_a_pattern_matches_is_in_its_folder(pattern: str, name: str) -> None:
    folder = folder_of(pattern)
    if is_pattern(pattern) and matcher(pattern)(name) and folder:
        assert name.startswith(f"{folder}/")


@pytest.mark.timeout(5)
def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not matcher("/".join(["**", "*a*a*a*a*b"] * 30))("/".join(["a" * 60] * 60))
