"""`proctor exposure` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.exposure.policies import POLICIES
from tests.unit.exposure.scans import write_corpus

QUESTION = "how many eggs do the ducks of Janet lay in a week"


@pytest.fixture
def items(tmp_path: Path) -> Path:
    rows = [
        {"id": "z", "question": QUESTION, "answer": "112", "choices": ["some many few others here", "112"]},
        {"id": "a", "question": "who wrote the song about the yellow submarine of Liverpool", "answer": "Lennon"},
        {"id": "z", "question": QUESTION, "answer": "112"},
        {"id": "s", "question": "2 + 2 = ?", "answer": "4"},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def run(*arguments: str | Path) -> int:
    return main(["exposure", *map(str, arguments)])


def test_items_keep_their_order_and_number_and_the_document_its_keys(
    items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(
        tmp_path / "c.jsonl", ["nothing", f"Janet: {QUESTION.upper()}? (a) Some many few others here (b) 112"]
    )
    arguments = ("scan", "--items", items, "--corpus", corpus, "--policy", "verbatim_item", "--format", "json")
    assert run(*arguments) == 0
    first = capsys.readouterr().out
    said: dict[str, Any] = json.loads(first)
    wanted = ["policy", "normalisation", "n_items", "n_unscorable", "n_exposed", "documents", "bytes", "skipped"]
    assert set(wanted) < said.keys()
    assert [said[name] for name in wanted[2:6]] == [4, 1, 2, 2]
    assert [item["item_id"] for item in said["items"]] == ["z", "a", "z", "s"]
    assert [item["verdict"] for item in said["items"]] == [
        "scope_limited", "clean_comparable", "scope_limited", "unscorable",
    ]  # fmt: skip
    assert said["n_duplicates"] == 1
    assert said["items"][0]["spans"][0]["document_text"] == QUESTION.upper()
    assert said["items"][0]["stages"]["pretrain"]["parts"].keys() == {"question", "choices", "answer"}
    assert run(*arguments) == 0
    assert capsys.readouterr().out == first


def test_the_table_names_what_is_exposed_and_claims_nothing_of_the_rest(
    items: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", [f"{QUESTION} \x1b[2J"])
    assert run("scan", "--items", items, "--corpus", corpus, "--policy", "any_ngram", "--ngram", "5") == 0
    said = capsys.readouterr().out
    assert "Exposed: 2 of 4 items; 1 are too short" in said
    assert f"{corpus}:1" in said
    assert "\x1b" not in said
    other = write_corpus(tmp_path / "other.jsonl", ["nothing"])
    assert run("scan", "--items", items, corpus.parent / "other.jsonl") == 0
    said = capsys.readouterr().out
    assert "Exposed: 0 of 4 items" in said
    assert "no proof that there is none" in said
    assert other.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--corpus", "c.jsonl", "--policy", "nonesuch"), "no policy 'nonesuch'; there are article_8gram_80"),
        (("--corpus", "none-*.jsonl"), "matches no file; nothing was searched"),
        ((), "--corpus is missing"),
        (("--corpus", "c.jsonl", "--text-column", "body"), "no column 'body'"),
        (("--corpus", "c.jsonl", "--ngram", "0"), "--ngram"),
    ],
)
def test_bad_options_are_one_line(
    items: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "c.jsonl", ["nothing"])
    assert run("scan", "--items", items, *arguments) == 2
    assert said in capsys.readouterr().err


def test_items_without_a_question_are_refused_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "one two"}\n{"ask": "three"}\n', "utf-8")
    corpus = write_corpus(tmp_path / "c.jsonl", ["nothing"])
    assert run("scan", "--items", tmp_path / "items.jsonl", "--corpus", corpus) == 2
    said = capsys.readouterr().err
    assert "items.jsonl:2: no question" in said
    assert "'ask'" in said


def test_every_policy_is_listed_with_its_rule_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("policies") == 0
    table = capsys.readouterr().out
    assert run("policies", "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == list(POLICIES)
    assert all(one["rule"] in table and one["source"] in table for one in listed)
