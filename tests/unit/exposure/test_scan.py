"""What a scan finds, against counts made another way."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.errors import ProctorError
from proctor.exposure import scanning
from proctor.exposure.corpus import CorpusFile, Piece, corpus_files, pieces_of
from proctor.exposure.index import build_index, open_index, save_index
from proctor.exposure.items import Part, ScannedItem, read_items
from proctor.exposure.piece_scan import PieceScanner
from proctor.exposure.policies import POLICIES
from proctor.exposure.scanned import PieceScan
from proctor.exposure.scanning import scan_corpus
from tests.support import wait_until
from tests.unit.exposure.scans import (
    gsm8k,
    plain_grams,
    plain_longest_run,
    plain_words,
    questions,
    reported,
    scanned,
    write_corpus,
)

#: Few words, so that n-grams meet by chance, repeat within a text and run on.
TEXT = st.lists(st.sampled_from(["a", "B", "c,", "d"]), max_size=14).map(" ".join)


@pytest.mark.parametrize(("n", "wanted"), [(5, 921), (8, 80), (10, 9), (13, 3), (20, 1)])
def test_counts_on_gsm8k_are_those_of_sets_of_tuples(n: int, wanted: int) -> None:
    folder = gsm8k()
    items = read_items(folder / "test.jsonl")
    index = build_index(items, n)
    found = scan_corpus(index, corpus_files([str(folder / "train.jsonl")]), columns=("question",))
    report = reported(items, index, found, POLICIES["any_ngram"])
    known: set[tuple[str, ...]] = set()
    with (folder / "train.jsonl").open() as lines:
        for line in lines:
            known |= plain_grams(json.loads(line)["question"], n)
    mine = [item.item_id for item in report.items if item.is_exposed]
    theirs = [item.item_id for item in items if plain_grams(item.parts[Part.QUESTION], n) & known]
    assert mine == theirs
    assert (len(mine), len(report.items)) == (wanted, 1319)
    assert report.n_unscorable == sum(len(plain_words(item.parts[Part.QUESTION])) < n for item in items)


@given(st.lists(TEXT.filter(str.strip), min_size=1, max_size=4), st.lists(TEXT, max_size=5), st.integers(1, 4))
@settings(max_examples=200)
def test_containment_and_runs_are_those_of_the_definition(texts: list[str], corpus: list[str], n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_corpus(Path(folder) / "corpus.jsonl", corpus)
        report = scanned(questions(texts), path, "article_8gram_80", n=n)
    for text, item in zip(texts, report.items, strict=True):
        [part] = item.stages["pretrain"].parts
        grams = plain_grams(text, n)
        shares = [len(grams & plain_grams(document, n)) / len(grams) for document in corpus] if grams else []
        assert part.containment == (max(shares, default=0.0) if grams else None)
        whole = sum(plain_words(document) == plain_words(text) for document in corpus if plain_words(document))
        assert part.whole_documents == whole
        run = max((plain_longest_run(text, document, n) for document in corpus), default=0)
        assert part.longest_run == (run or (len(plain_words(text)) if whole else 0))


@given(
    st.lists(TEXT.filter(str.strip), min_size=1, max_size=4),
    st.lists(TEXT, min_size=1, max_size=9),
    st.integers(1, 40),
)
@settings(max_examples=100)
def test_however_a_file_is_cut_into_pieces_the_report_is_the_same(
    texts: list[str], corpus: list[str], piece_bytes: int
) -> None:
    items = questions(texts)
    index = build_index(items, 2)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        files = corpus_files([str(write_corpus(Path(folder) / "corpus.jsonl", corpus))])
        whole = scan_corpus(index, files)
        patch.setattr(scanning, "pieces_of", lambda files: pieces_of(files, piece_bytes))
        cut = scan_corpus(index, files)
    rule = POLICIES["any_ngram"]
    assert reported(items, index, cut, rule).document() == reported(items, index, whole, rule).document()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_find_what_one_finds_and_the_same_bytes_give_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(scanning, "start_method", lambda pieces: method)
    words = [f"w{number}" for number in range(40)]
    corpus = [" ".join(words[number : number + 12]) for number in range(0, 28, 4)]
    for number in range(3):
        write_corpus(tmp_path / f"corpus-{number}.jsonl", corpus[number::3])
    items = questions([" ".join(words[number : number + 9]) for number in range(30)])
    index = build_index(items, 5)
    files = corpus_files([str(tmp_path / "*.jsonl")])
    rule = POLICIES["article_8gram_80"]
    documents = [
        reported(items, index, scan_corpus(index, files, workers=workers), rule).document() for workers in (1, 2, 1)
    ]
    assert documents[0] == documents[1] == documents[2]
    assert 0 < documents[0]["n_exposed"] < 30


def test_a_process_that_is_killed_in_the_middle_ends_the_scan_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write_corpus(tmp_path / f"{number}.jsonl", ["one two three four five"])
    parent, dying = os.getpid(), tmp_path / "dying"

    class Killed(PieceScanner):
        def scan(self, piece: Piece, *rest: Any) -> PieceScan:
            if os.getpid() != parent:
                dying.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            # Else this process might do all of them before the other has begun.
            wait_until(dying.exists, what="the other process")
            return super().scan(piece, *rest)

    monkeypatch.setattr(scanning, "PieceScanner", Killed)
    monkeypatch.setattr(scanning, "start_method", lambda pieces: "fork")
    index = build_index(questions(["one two three four five"]), 3)
    with pytest.raises(ProctorError, match="was killed; is there too little memory"):
        scan_corpus(index, corpus_files([str(tmp_path / "*.jsonl")]), workers=2)


def test_a_scan_forks_only_where_it_is_alone_and_has_no_connections(tmp_path: Path) -> None:
    here = [Piece(CorpusFile(str(tmp_path / "a.jsonl"), 1, 1))]
    away = [*here, Piece(CorpusFile("s3://bucket/a.jsonl", 1, 1))]
    alone = sys.platform == "linux" and threading.active_count() == 1
    assert scanning.start_method(here) == ("fork" if alone else "spawn")
    assert scanning.start_method(away) == "spawn"
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        assert scanning.start_method(here) == "spawn"
    finally:
        over.set()
        other.join()


def test_what_is_kept_of_a_scan_is_not_done_again_and_what_changed_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = questions(["one two three four five", "six seven eight nine ten"])
    index = build_index(items, 3)
    write_corpus(tmp_path / "a.jsonl", ["one two three four five", "zero"])
    write_corpus(tmp_path / "b.jsonl", ["nothing of it"])
    asked: list[str] = []

    class Counted(PieceScanner):
        def scan(self, piece: Piece, *rest: Any) -> PieceScan:
            asked.append(Path(piece.file.path).name)
            return super().scan(piece, *rest)

    monkeypatch.setattr(scanning, "PieceScanner", Counted)

    def scan() -> dict[str, object]:
        found = scan_corpus(index, corpus_files([str(tmp_path / "*.jsonl")]), state=tmp_path / "state")
        return reported(items, index, found, POLICIES["any_ngram"]).document()

    first = scan()
    assert asked == ["a.jsonl", "b.jsonl"]
    assert scan() == first
    assert asked == ["a.jsonl", "b.jsonl"]
    write_corpus(tmp_path / "b.jsonl", ["now six seven eight nine ten"])
    assert scan()["n_exposed"] == 2
    assert asked[2:] == ["b.jsonl"]
    for kept in (tmp_path / "state").iterdir():
        kept.write_bytes(kept.read_bytes()[:100])
    assert scan()["n_exposed"] == 2
    assert sorted(asked[3:]) == ["a.jsonl", "b.jsonl"]


@given(st.lists(st.lists(TEXT, max_size=4), min_size=2, max_size=4))
@settings(max_examples=50)
def test_a_scanner_remembers_nothing_of_the_piece_before(corpora: list[list[str]]) -> None:
    index = build_index(questions(["a b c d", "c d a"]), 2)
    used = PieceScanner(index)
    with tempfile.TemporaryDirectory() as folder:
        for number, corpus in enumerate(corpora):
            [file] = corpus_files([str(write_corpus(Path(folder) / f"{number}.jsonl", corpus))])
            again, fresh = (
                scanner.scan(Piece(file), ("text",), False, lambda read: None)
                for scanner in (used, PieceScanner(index))
            )
            assert again._replace(found=fresh.found) == fresh
            for mine, theirs in zip(again.found, fresh.found, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_an_index_that_was_saved_is_the_same(tmp_path: Path) -> None:
    index = build_index(questions(["one two three", "three four five six"]), 2, weighted=True)
    save_index(index, tmp_path)
    opened = open_index(tmp_path)
    assert (opened.units, opened.digest, opened.arrays.n) == (index.units, index.digest, 2)
    for name, array in index.arrays._asdict().items():
        assert (getattr(opened.arrays, name) == array).all() if name not in ("n", "filter_shift") else True


def test_items_that_are_too_short_are_counted_and_found_where_a_document_is_nothing_else(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl", ["2 + 2 = ?", "what is 3 + 3 you ask"])
    report = scanned(questions(["2 + 2 =", "3 + 3", "a longer one that has n-grams"]), corpus, n=5)
    assert [item.verdict for item in report.items] == ["scope_limited", "unscorable", "clean_comparable"]
    assert (report.n_exposed, report.n_unscorable, len(report.items)) == (1, 1, 3)


def test_no_n_gram_reaches_from_one_column_into_the_next(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "one two three", "a": "four five six"}) + "\n", "utf-8")
    items = questions(["two three four five", "one two three", "four five six"])
    report = scanned(items, tmp_path / "rows.jsonl", n=3)
    assert [item.is_exposed for item in report.items] == [False, True, True]
    assert [item.stages["pretrain"].parts[0].whole_documents for item in report.items] == [0, 1, 1]


def test_what_every_item_says_weighs_next_to_nothing(tmp_path: Path) -> None:
    template = "answer the following question with one letter only please thank you"
    texts = [f"{template} {' '.join(f'word{item}x{at}' for at in range(12))}" for item in range(50)]
    items = questions(texts)
    index = build_index(items, 3, weighted=True)
    corpus = write_corpus(tmp_path / "corpus.jsonl", [template, texts[7]])
    found = scan_corpus(index, corpus_files([str(corpus)]))
    report = reported(items, index, found, POLICIES["idf_containment"])
    assert [item.item_id for item in report.items if item.is_exposed] == ["7"]
    assert all(item.containment is not None and item.containment < 0.02 for item in report.items if item.item_id != "7")


def test_spans_are_the_words_in_both_and_say_where(tmp_path: Path) -> None:
    text = "Naïve ducks lay 16 eggs. She eats three — every day!"
    document = "It is said: NAI\u0308VE ducks\nlay 16 eggs; nobody eats\nthree every day at all."
    corpus = write_corpus(tmp_path / "corpus.jsonl", ["nothing", document])
    report = scanned(questions([text]), corpus, n=3)
    first, second = report.items[0].spans
    assert (first["text"], first["document_text"]) == ("Naïve ducks lay 16 eggs", "NAI\u0308VE ducks\nlay 16 eggs")
    assert (second["text"], second["document_text"]) == ("eats three — every day", "eats\nthree every day")
    for span in (first, second):
        assert (span["file"], span["document"]) == (str(corpus), 2)
        assert text[span["start"] : span["end"]] == span["text"]
        assert document.encode()[span["offset"] :].startswith(span["document_text"].encode())


def test_a_label_beside_the_question_in_tuning_data_is_invalid_evidence(tmp_path: Path) -> None:
    question, answer = "which gate does the alpha bridge point to", "the south gate"
    items = [ScannedItem("q_alpha", {Part.QUESTION: question, Part.ANSWER: answer})]
    told = write_corpus(tmp_path / "told.jsonl", [f"Q: {question}? A: The SOUTH gate."])
    named = write_corpus(tmp_path / "named.jsonl", [f"[q_alpha] {question}?"])
    bare = write_corpus(tmp_path / "bare.jsonl", [f"{question}? Nobody knows."])
    verdicts = {
        (path.stem, stage): scanned(items, path, "verbatim_item", n=5, stage=stage).items[0].verdict
        for path in (told, named, bare)
        for stage in ("pretrain", "tune")
    }
    assert verdicts == {
        ("told", "pretrain"): "scope_limited",
        ("told", "tune"): "invalid_evidence",
        ("named", "pretrain"): "scope_limited",
        ("named", "tune"): "invalid_evidence",
        ("bare", "pretrain"): "scope_limited",
        ("bare", "tune"): "scope_limited",
    }


def test_policies_differ_where_their_rules_do(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(30)]
    text = " ".join(words)
    halves = [" ".join(words[:18]), " ".join(words[12:])]
    nine_tenths = " ".join(words[:28])
    items = questions([text])

    def exposed(name: str, corpus: list[str]) -> bool:
        rule = POLICIES[name]
        path = write_corpus(tmp_path / "corpus.jsonl", corpus)
        index = build_index(items, rule.n)
        return reported(items, index, scan_corpus(index, corpus_files([str(path)])), rule).n_exposed == 1

    # PaLM adds documents up, the article's rule does not.
    assert exposed("palm_8gram_70", halves)
    assert not exposed("article_8gram_80", halves)
    assert exposed("article_8gram_80", [nine_tenths])
    assert not exposed("verbatim_item", [nine_tenths])
    assert exposed("verbatim_item", [f"so: {text.upper()}."])
    # GPT-3 leaves out what more than ten documents say.
    assert exposed("gpt3_13gram", [halves[0]] * 10)
    assert not exposed("gpt3_13gram", [halves[0]] * 11)
    assert exposed("any_ngram", [halves[0]] * 11)
