"""The page of a search: what is in both is marked in both, and nothing hostile in either does anything."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.studies.exposure.page import Piece, pieces_of
from tests.unit.exposure.scans import write_corpus

HOSTILE = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """The texts that a page marks, and the tags that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.marked: list[str] = []
        self.tags: set[str] = set()
        self._in_mark = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._in_mark = tag == "mark"

    def handle_endtag(self, tag: str) -> None:
        self._in_mark = False

    def handle_data(self, data: str) -> None:
        if self._in_mark:
            self.marked.append(data)


def page_of(tmp_path: Path, question: str, document: str) -> str:
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": f"q{HOSTILE}", "question": question}) + "\n", "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", ["nothing", document])
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--policy", "any_ngram", "--ngram", "4", "--page", str(tmp_path / "page.html")]) == 0
    return (tmp_path / "page.html").read_text("utf-8")


def test_what_is_in_both_is_marked_in_both(tmp_path: Path) -> None:
    page = page_of(tmp_path, "How many eggs do the DUCKS lay in May?", "He asked: how many eggs, do the ducks eat?")
    assert Reader(page).marked == ["How many eggs do the DUCKS", "how many eggs, do the ducks"]
    assert "1 of 1 item exposed" in page
    assert "stands in pretrain data" in page.casefold()


def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path) -> None:
    words = f"{HOSTILE} one two three four \u202e"
    read = Reader(page := page_of(tmp_path, words, f"before {words} after"))
    assert "script" not in read.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page


def test_a_search_that_finds_nothing_says_what_that_means(tmp_path: Path) -> None:
    page = page_of(tmp_path, "How many eggs do the ducks lay in May?", "something else altogether")
    assert "no proof that none was seen" in page
    assert Reader(page).marked == []


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "one two three four"}\n', "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", ["nothing"])
    (tmp_path / "file").write_text("")
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--page", str(tmp_path / "file" / "page.html")]) == 2
    assert "--page" in capsys.readouterr().err


def test_spans_that_overlap_are_one_mark() -> None:
    spans = [{"start": 2, "end": 5}, {"start": 4, "end": 8}, {"start": 2, "end": 3}]
    pieces = (Piece("01", is_match=False), Piece("234567", is_match=True), Piece("89", is_match=False))
    assert pieces_of("0123456789", spans) == pieces


def test_of_a_long_text_the_page_says_how_much_it_leaves_out() -> None:
    match, rest = pieces_of("word" + "x" * 5_000, [{"start": 0, "end": 4}])
    assert match == Piece("word", is_match=True)
    assert rest == Piece("x" * 4_000 + "… (1,000 more characters)", is_match=False)
