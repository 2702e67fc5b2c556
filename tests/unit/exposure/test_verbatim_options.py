"""An item with options is verbatim in a document where question and options stand there, and not with other options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.exposure.corpus import corpus_files
from proctor.exposure.index import build_index
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.policies import POLICIES
from proctor.exposure.scanning import scan_corpus
from tests.unit.exposure.scans import reported, write_corpus

QUESTION = "Which of these is the capital of Naevlundo today?"
ITEM = ScannedItem("c", {Part.QUESTION: QUESTION, Part.CHOICES: "Labax\nNew Zedando\nBrabemek", Part.ANSWER: "Labax"})


@pytest.mark.parametrize(
    ("document", "is_exposed"),
    [
        (f"Question: {QUESTION}\nA. Labax\nB. New Zedando\nC. Brabemek\nAnswer: A", True),
        (json.dumps({"q": QUESTION, "options": ["Brabemek", "Labax", "New Zedando"]}), True),
        (f"{QUESTION} (a) LABAX (b) new\nzedando (c) Brabemek", True),
        (f"Question: {QUESTION}\nA. Labax\nB. Zedando\nC. Brabemek\nAnswer: A", False),
        (f"Question: {QUESTION}\nA. Labax\nB. Vlutitz\nC. Brabemek\nAnswer: A", False),
        (QUESTION, False),
        (f"They asked: {QUESTION} Nobody knew.", False),
    ],
)
def test_the_whole_item_is_question_and_options(tmp_path: Path, document: str, is_exposed: bool) -> None:
    path = write_corpus(tmp_path / "corpus.jsonl", [document])
    index = build_index([ITEM], 5)
    report = reported([ITEM], index, scan_corpus(index, corpus_files([str(path)])), POLICIES["verbatim_item"])
    (item,) = report.items
    assert item.is_exposed is is_exposed
    assert any(part.is_past for stage in item.stages.values() for part in stage.parts) is is_exposed


def test_the_rule_says_so() -> None:
    assert POLICIES["verbatim_item"].words.endswith("every option beside it")
    assert "option" not in POLICIES["article_8gram_80"].words
