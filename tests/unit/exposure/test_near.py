"""Near duplicates: found in whatever they stand, refused where they ask something else, and never called exposed."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from proctor.cli.main import main
from proctor.exposure.corpus import corpus_files, pieces_of
from proctor.exposure.near.embedding import EmbeddingSearch, length_classes
from proctor.exposure.near.matches import broken_invariant, plain
from proctor.exposure.near.minhash import MinhashSearch, jaccard, shingles
from proctor.exposure.near.scanning import NearScan, scan_minhash, scan_near
from proctor.exposure.near.sentences import form_of, sentences
from proctor.text.overlap_words import overlap_words
from tests.unit.exposure.scans import write_corpus

QUESTION = (
    "Janet's ducks lay 16 eggs per day. She eats three for breakfast every morning and bakes muffins for her friends "
    "every day with four. She sells the remainder at the market for $2 per fresh egg. How much does she make every day?"
)
EDITED = (
    "Janet's ducks lay 16 eggs each day. She eats three of them for breakfast every morning, and bakes muffins for her "
    "friends daily with four. She sells the remainder at the market for $2 per egg. How much does she make every day?"
)
OTHER_NUMBERS = EDITED.replace("16", "18")
AROUND = "The committee met on Tuesday in the old hall. Nobody had brought the 3 keys, so they waited outside for long."


def search(tmp_path: Path, *documents: str, workers: int = 1) -> NearScan:
    corpus = write_corpus(tmp_path / "c.jsonl", documents)
    return scan_minhash([QUESTION], 0.3, corpus_files([str(corpus)]), workers=workers)


@pytest.mark.parametrize("document", [EDITED, f"{AROUND}\n\n{EDITED}\n\n{AROUND}", f"{AROUND} {EDITED} {AROUND}"])
def test_an_edited_copy_is_found_alone_and_within_a_longer_text(tmp_path: Path, document: str) -> None:
    found = search(tmp_path, AROUND, document)
    assert found.documents == 2
    assert found.refused == {}
    match = found.found[0]
    assert (match.document, match.text) == (2, EDITED)
    assert document.encode()[match.offset :].startswith(EDITED.encode())
    assert match.similarity == pytest.approx(0.8, abs=0.1)


def test_a_copy_with_another_number_is_like_it_and_no_duplicate(tmp_path: Path) -> None:
    found = search(tmp_path, OTHER_NUMBERS)
    assert found.found == {}
    assert found.refused[0].broken == "numerals"
    assert search(tmp_path, OTHER_NUMBERS, EDITED).refused == {}


def test_markup_is_no_other_answer(tmp_path: Path) -> None:
    marked = "## Problem\n\n> " + EDITED.replace("16", "$16$").replace("Janet's", "**Janet's**").replace(
        "four", "`four`"
    )
    assert 0 in search(tmp_path, marked).found
    assert plain("They cost $5 and $6, or $7/$8.") == "They cost $5 and $6, or $7/$8."
    assert broken_invariant("Ann has $16$ *red* eggs.", "Ann has 16 red eggs.") is None


def test_columns_of_a_row_are_not_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"q": EDITED.rstrip("?"), "a": "18 dollars for 9 eggs"}) + "\n", "utf-8")
    [match] = scan_minhash([QUESTION], 0.3, corpus_files([str(path)]), ("q", "a")).found.values()
    assert match.text == EDITED.rstrip("?")


def test_of_several_copies_the_most_like_and_of_equal_ones_the_first_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [AROUND, EDITED, QUESTION, AROUND, QUESTION, EDITED]
    assert search(tmp_path, *documents).found[0][:4] == (1.0, None, str(tmp_path / "c.jsonl"), 3)
    (tmp_path / "d.jsonl").write_bytes((tmp_path / "c.jsonl").read_bytes())
    files = corpus_files([str(tmp_path / "?.jsonl")])
    one, two = (scan_minhash([QUESTION], 0.3, files, workers=workers) for workers in (1, 2))
    assert one == two
    assert one.documents == 12


def test_a_file_in_pieces_has_the_lines_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.exposure.near import scanning

    whole = search(tmp_path, AROUND, AROUND, EDITED, AROUND, workers=2)
    monkeypatch.setattr(scanning, "pieces_of", lambda files: pieces_of(files, 150))
    assert search(tmp_path, AROUND, AROUND, EDITED, AROUND, workers=2) == whole


def test_a_short_question_is_counted_and_not_looked_for() -> None:
    assert MinhashSearch([QUESTION, "2 + 2 = ?"]).too_short == [1]
    assert list(MinhashSearch(["2 + 2 = ?"]).look_up([])) == []


@given(st.text(max_size=900))
def test_sentences_are_in_order_apart_and_leave_out_nothing_that_is_seen(text: str) -> None:
    found = sentences(text)
    at = 0
    for one in found:
        assert at <= one.start < one.end
        assert text[one.start : one.end].strip()
        assert not text[at : one.start].replace("\udcff", "").strip()
        at = one.end
    assert not text[at:].replace("\udcff", "").strip()


@given(st.text(max_size=200))
def test_the_form_is_that_in_which_a_corpus_is_compared(text: str) -> None:
    assert form_of(text) == " ".join(word.form for word in overlap_words(text))


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_similarity_is_jaccard_s(one: set[int], other: set[int]) -> None:
    left, right = frozenset(map(str, one)), frozenset(map(str, other))
    assert jaccard(left, right) == (len(one & other) / len(one | other) if one & other else 0.0)
    assert len(shingles("abcdefg")) == 3


def test_long_runs_without_a_mark_take_linear_time() -> None:
    for text in ("x" * 2_000_000, "\n \t" * 500_000, "a. " * 500_000, "\n" * 1_000_000 + "x"):
        sentences(text)


def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of the letters' counts: near for what has the same words."""
    rows = np.zeros((len(texts), 26), dtype=np.float32)
    for row, text in enumerate(texts):
        for letter in text.casefold():
            if "a" <= letter <= "z":
                rows[row, ord(letter) - 97] += 1
    unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))
    return unit


@pytest.mark.parametrize("document", [EDITED, f"{AROUND} {AROUND}\n\n{EDITED}\n\n{AROUND} {AROUND} {AROUND}"])
def test_a_passage_that_is_near_and_asks_the_same_is_found_by_its_vector(tmp_path: Path, document: str) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", [AROUND, document, OTHER_NUMBERS])
    search = EmbeddingSearch(["Who wrote the song about the submarine?", QUESTION], vectors, threshold=0.9)
    found = scan_near(search, corpus_files([str(corpus)]))
    match = found.found[1]
    assert (match.document, match.text, match.broken) == (2, EDITED, None)
    assert document.encode()[match.offset :].startswith(EDITED.encode())
    assert search.embedded == search.passages


def test_a_sample_is_drawn_from_all_passages_by_its_seed(tmp_path: Path) -> None:
    documents = [f"{AROUND} Number {number} was there." for number in range(300)]
    corpus = corpus_files([str(write_corpus(tmp_path / "c.jsonl", documents))])
    seen: list[list[str]] = []

    def watched(texts: Sequence[str]) -> NDArray[np.float32]:
        seen.append(list(texts))
        return vectors(texts)

    drawn = []
    for seed in (1, 1, 2):
        seen.clear()
        search = EmbeddingSearch([QUESTION], watched, sample=40, rng=random.Random(seed))
        scan_near(search, corpus)
        assert (search.embedded, search.passages) == (40, 300)
        drawn.append(seen[1])
    assert drawn[0] == drawn[1] != drawn[2]
    assert max(int(text.rsplit(" ", 3)[1]) for text in drawn[0]) > 200


@given(st.lists(st.integers(1, 5_000), min_size=1))
def test_every_item_is_near_a_class_of_lengths(lengths: list[int]) -> None:
    classes = length_classes(lengths)
    assert all(any(one / 1.6 <= length <= one * 1.6 + 1 for one in classes) for length in lengths)


def test_a_near_duplicate_is_evidence_of_its_own_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "near", "question": QUESTION}, {"id": "short", "question": "2 + 2 = ?"}]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", [AROUND, f"{AROUND} {EDITED}"])
    page = tmp_path / "page.html"
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--near", "minhash", "--format", "json", "--page", str(page)]) == 0
    report = json.loads(capsys.readouterr().out)
    [search] = report["near"]
    assert (search["method"], search["n_near"], search["n_refused"], search["n_too_short"]) == ("minhash", 1, 0, 1)
    assert report["n_exposed"] == 0
    near, short = report["items"]
    assert (near["verdict"], near["stages"]["pretrain"]["is_exposed"]) == ("scope_limited", False)
    assert "a near duplicate stands in pretrain data (minhash, similarity 0." in near["reasons"][0]
    assert near["near"][0]["text"] == EDITED
    assert (short["verdict"], short.get("near")) == ("unscorable", None)
    assert "Near duplicates" in page.read_text("utf-8")
    assert main([*arguments, "--near", "minhash"]) == 0
    said = capsys.readouterr().out
    assert "Exposed: 0 of 2 items" in said
    assert "Near duplicates by minhash: 1 of 2 items; 0 more have only what asks something else." in said


def test_without_the_option_a_report_says_nothing_of_near_duplicates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n", "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", [EDITED])
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--format", "json"]) == 0
    assert "near" not in json.loads(capsys.readouterr().out)


def test_bad_methods_and_missing_packages_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n", "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", [EDITED])
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--near", "soundex"]) == 2
    assert "no search for near duplicates 'soundex'; there are minhash, embedding" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "rensa", None)
    assert main([*arguments, "--near", "minhash"]) == 2
    assert "--near minhash needs rensa: pip install 'proctor[exposure]'" in capsys.readouterr().err
    monkeypatch.setenv("PROCTOR_ENCODER", str(tmp_path / "nowhere"))
    assert main([*arguments, "--near", "embedding"]) == 1
    assert "PROCTOR_ENCODER" in capsys.readouterr().err
