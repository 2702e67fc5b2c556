"""What of a long document is kept as evidence: around the longest run, with what stands beside it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.exposure.evidence_window import AROUND_BYTES, window
from proctor.exposure.items import Part, ScannedItem
from tests.unit.exposure.scans import questions, scanned

QUESTION = "how many eggs do the ducks of Janet lay in a week if each of the three lays two a day and four on Sunday"
FRAGMENT = "how many eggs do the ducks of Janet lay"


def filler(size: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    words = ["stone", "river", "cloud", "lamp", "paper", "glass", "wheel", "shade"]
    text = " ".join(rng.choices(words, k=size // 5))
    return text[:size]


@pytest.mark.parametrize("before", [0, 30_000, 200_000])
@pytest.mark.parametrize("after", [0, 200_000])
def test_the_longest_run_of_a_long_text_is_kept_wherever_its_fragments_stand(
    tmp_path: Path, before: int, after: int
) -> None:
    text = f"{FRAGMENT} {filler(before)} {QUESTION} {filler(after)} {FRAGMENT}"
    (tmp_path / "c.txt").write_text(text, "utf-8")
    report = scanned(questions([QUESTION]), tmp_path / "c.txt", n=5)
    [item] = report.items
    longest = max(item.spans, key=lambda span: int(span["words"]))
    assert longest["words"] == item.longest_run == len(QUESTION.split())
    at = longest["document"] + longest["offset"]
    assert text.encode()[at:].startswith(QUESTION.encode())


def test_a_label_beside_the_longest_run_is_seen_and_one_beside_a_fragment_far_off_is_not(tmp_path: Path) -> None:
    item = ScannedItem("janet-eggs-17", {Part.QUESTION: QUESTION, Part.ANSWER: "no fewer than forty"})
    beside = f"{FRAGMENT} {filler(60_000)} {QUESTION} {filler(1_500)} No fewer than forty. {filler(60_000)}"
    far = f"{FRAGMENT} No fewer than forty. {filler(60_000)} {QUESTION} {filler(60_000)}"
    for text, verdict in ((beside, "invalid_evidence"), (far, "scope_limited")):
        (tmp_path / "c.txt").write_text(text, "utf-8")
        report = scanned([item], tmp_path / "c.txt", "article_8gram_80", n=8, stage="tune")
        assert report.items[0].verdict.value == verdict


def test_a_run_longer_than_what_is_kept_of_other_texts_is_kept_whole(tmp_path: Path) -> None:
    rng = random.Random(3)
    passage = " ".join(f"word{rng.randrange(10**6)}" for _ in range(6_000))
    (tmp_path / "c.txt").write_text(f"{' '.join(passage.split()[:6])} {filler(50_000)} {passage} end", "utf-8")
    report = scanned(questions([passage]), tmp_path / "c.txt", "verbatim_item", n=5)
    [item] = report.items
    assert item.is_exposed
    assert max(span["words"] for span in item.spans) == 6_000


@given(st.tuples(*[st.integers(0, 10**6)] * 4).map(sorted), st.integers(0, 30_000))
def test_what_is_kept_holds_the_run_with_its_surroundings_and_is_no_longer_than_allowed(
    places: list[int], run: int
) -> None:
    first, run_first, _, last = places
    run_last = min(last, run_first + run)
    most = max(20_000, run_last - run_first + 2 * AROUND_BYTES)
    begin, end = window(first, last, run_first, run_last, most)
    assert end - begin <= most
    assert begin <= max(first - AROUND_BYTES, run_first - AROUND_BYTES)
    assert end >= min(last + AROUND_BYTES, run_last + AROUND_BYTES)
