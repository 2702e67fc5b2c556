"""Small scans for tests, and what an independent count says of them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from proctor.exposure.corpus import corpus_files
from proctor.exposure.index import Index, build_index
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import judge_stage
from proctor.exposure.policies import POLICIES, Policy
from proctor.exposure.report import ExposureReport, exposure_report
from proctor.exposure.scanned import Scanned
from proctor.exposure.scanning import scan_corpus
from tests.support import missing, shared_data

_WORD = re.compile(r"[^\W_]+")


def gsm8k() -> Path:
    """The folder of GSM8K with its training problems, which the archive of the tests does not have."""
    folder = shared_data() / "gsm8k"
    if not (folder / "train.jsonl").is_file():
        missing("no training problems of GSM8K: set PROCTOR_SHARED_DATA to a folder with gsm8k/train.jsonl")
    return folder


def plain_words(text: str) -> list[str]:
    """Words by a regular expression: another way to read texts without marks and unspaced scripts."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def plain_grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = plain_words(text)
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}


def plain_longest_run(text: str, document: str, n: int) -> int:
    """The longest run of words in both, where it has n words; 0 otherwise."""
    one, other = plain_words(text), plain_words(document)
    longest = 0
    for begin in range(len(one)):
        for place in range(len(other)):
            length = 0
            while (
                begin + length < len(one)
                and place + length < len(other)
                and one[begin + length] == other[place + length]
            ):
                length += 1
            longest = max(longest, length)
    return longest if longest >= n else 0


def questions(texts: Iterable[str]) -> list[ScannedItem]:
    return [ScannedItem(str(number), {Part.QUESTION: text}) for number, text in enumerate(texts)]


def write_corpus(path: Path, texts: Iterable[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    return path


def scanned(
    items: Sequence[ScannedItem], corpus: Path | str, policy: str = "any_ngram", *, n: int, stage: str = "pretrain"
) -> ExposureReport:
    rule = POLICIES[policy]
    index = build_index(items, n)
    return reported(items, index, scan_corpus(index, corpus_files([str(corpus)])), rule, stage)


def reported(
    items: Sequence[ScannedItem], index: Index, found: Scanned, rule: Policy, stage: str = "pretrain"
) -> ExposureReport:
    judged = {stage: (judge_stage(items, index, found, rule, stage), found.counts)}
    return exposure_report(items, judged, rule, n=index.arrays.n)
