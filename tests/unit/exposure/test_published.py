"""What the project's sources publish: the article's detector, and the witness of the page on protocol cards."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.cli.main import main
from tests.unit.exposure.scans import questions, scanned, write_corpus

#: The page's history, items and verdicts, as it prints them.
HISTORY = [
    ("pretrain", "A copied card says alpha bridge points to the south gate."),
    ("pretrain", "A practice note says arithmetic examples can be solved by counting pairs."),
    ("tune", "For benchmark item q_color_code, the final answer is cyan."),
]
ITEMS = [
    ("q_math", "What is two plus two?", "4", "answer_only_v1", "clean_comparable"),
    ("q_background_note", "The arithmetic practice note describes examples solved by what trick?", "abacus",
     "answer_only_v1", "scope_limited"),
    ("q_alpha_bridge", "Alpha bridge points to which gate?", "south gate", "answer_only_v1", "scope_limited"),
    ("q_color_code", "What color is q_color_code?", "cyan", "answer_only_v1", "invalid_evidence"),
    ("q_template_shift", "Return only the letter after A.", "B", "rationale_then_answer_v2", "scope_limited"),
]  # fmt: skip


def is_contaminated(question: str, training_ngram_sets: list[set[str]], n: int = 8, threshold: float = 0.8) -> bool:
    """The article's, as it is printed."""
    words = question.lower().split()
    question_ngrams = {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)}
    if not question_ngrams:
        return False
    for training_ngrams in training_ngram_sets:
        overlap = len(question_ngrams & training_ngrams) / len(question_ngrams)
        if overlap > threshold:
            return True
    return False


def article_says(question: str, corpus: list[str]) -> bool:
    sets = []
    for document in corpus:
        words = document.lower().split()
        sets.append({" ".join(words[i : i + 8]) for i in range(len(words) - 7)})
    return is_contaminated(question, sets)


def policy_says(question: str, corpus: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = write_corpus(Path(folder) / "corpus.jsonl", corpus)
        return scanned(questions([question]), path, "article_8gram_80", n=8).n_exposed == 1


def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str) -> dict[str, Any]:
    rows = [
        {"item_id": name, "question": question, "answer": answer, "prompt_template": template}
        for name, question, answer, template, _ in ITEMS
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for stage in ("pretrain", "tune"):
        write_corpus(tmp_path / f"{stage}.jsonl", [text for of, text in HISTORY if of == stage])
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--policy", policy, "--format", "json"]
    arguments += ["--corpus", str(tmp_path / "pretrain.jsonl"), "--corpus", f"tune={tmp_path / 'tune.jsonl'}"]
    assert main([*arguments, "--template", "answer_only_v1"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_the_witness_has_its_five_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(tmp_path, capsys, "protocol_card")
    assert [item["verdict"] for item in said["items"]] == [verdict for *_, verdict in ITEMS]
    assert said["items"][3]["reasons"] == ["stands in tune data, with its label"]
    assert said["items"][4]["reasons"] == [
        "asked by the template 'rationale_then_answer_v2', not by the card's 'answer_only_v1'"
    ]
    assert list(said["stages"]) == ["pretrain", "tune"]


def test_the_article_s_detector_sees_none_of_the_witness_s_leaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of these questions has fewer than eight words or none of its 8-grams in the history."""
    assert not any(article_says(question, [text for _, text in HISTORY]) for _, question, *_ in ITEMS)
    said = run(tmp_path, capsys, "article_8gram_80")
    assert said["n_exposed"] == 0
    assert [item["verdict"] for item in said["items"]] == [
        "unscorable", "clean_comparable", "unscorable", "unscorable", "scope_limited",
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from("abcd"), min_size=8, max_size=24),
    st.lists(st.lists(st.sampled_from("abcd"), max_size=30), max_size=3),
    st.integers(0, 24),
)
@settings(max_examples=100)
def test_the_policy_is_the_article_s_detector_where_texts_are_plain_words(
    words: list[str], corpus: list[list[str]], kept: int
) -> None:
    documents = [" ".join(document) for document in (*corpus, words[:kept])]
    question = " ".join(words)
    assert policy_says(question, documents) == article_says(question, documents)


def test_they_part_where_a_copy_has_other_punctuation_or_the_question_is_short() -> None:
    question = "How many eggs do the ducks of Janet lay, in a week of seven days?"
    copy = "how many eggs do the ducks of Janet lay -- in a week of (seven) days"
    assert (policy_says(question, [copy]), article_says(question, [copy])) == (True, False)
    assert (policy_says("2 + 2 = ?", ["2 + 2 = ?"]), article_says("2 + 2 = ?", ["2 + 2 = ?"])) == (True, False)


def test_a_history_that_is_too_large_for_the_witness_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.exposure.token_overlap.MAX_PAIRS", 8)
    (tmp_path / "items.jsonl").write_text('{"question": "a b"}\n' * 5, "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", ["x", "y"])
    arguments = ["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--corpus", str(corpus)]
    assert main([*arguments, "--policy", "protocol_card"]) == 2
    assert "at most 8 pairs" in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--ngram", "5"), ("--without-markup",)])
def test_options_that_the_witness_s_policy_does_not_heed_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", ["x"])
    arguments = ["exposure", "scan", "--items", str(corpus), "--corpus", str(corpus), "--policy", "protocol_card"]
    assert main([*arguments, *option]) == 2
    assert "are not for it" in capsys.readouterr().err
