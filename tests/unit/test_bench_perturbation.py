"""The speed benchmark counts what it says: every rewording that the rules made, and those that the gate passed on.

Nothing is timed here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench_perturbation
from benchmarking import encoders, stories
from proctor.domain.item import Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import screen
from proctor.perturbation.strategies.compose import make_chain
from proctor.perturbation.strategies.registry import rule_strategies

RULE_STRATEGIES = rule_strategies()


def test_all_that_each_rule_makes_is_counted_and_what_the_gate_passes_on() -> None:
    items = stories.made_up(6, seed=1)
    settings = PerturbationSection(perturbation_strategy="typo")
    verdicts = [
        screen(item, candidate, settings)
        for name in RULE_STRATEGIES
        for item in items
        for candidate in make_chain(name, RULE_STRATEGIES).candidates(item, seed=3, limit=3)
    ]
    passed = sum(not isinstance(verdict, Rejection) for verdict in verdicts)
    assert bench_perturbation.make(items, 3)[:2] == (len(verdicts), passed)
    assert 0 < passed < len(verdicts)


def test_every_rule_finds_a_place_in_the_made_up_questions() -> None:
    items = stories.made_up(40, seed=0)
    made = {name: bench_perturbation.make(items, 0, [name]).made for name in RULE_STRATEGIES}
    assert min(made.values()) > 0, made


def test_the_same_seed_makes_up_the_same_questions() -> None:
    assert stories.made_up(5, seed=2) == stories.made_up(5, seed=2) != stories.made_up(5, seed=3)


def test_questions_of_a_file_are_read_with_their_answers(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "How many?", "answer": "#### 3"}\n', encoding="utf-8")
    (item,) = stories.read(path)
    assert (item.question, item.target) == ("How many?", "#### 3")


def test_a_warm_library_answers_with_all_its_variants_and_embeds_nothing() -> None:
    with bench_perturbation.warm_library(stories.made_up(10, seed=0)) as (ask, variants, embedded):
        texts = list(embedded)
        assert ask() == variants > 0
        assert embedded == texts
        assert len(texts) == len(set(texts)) == 10 + variants


def test_pairs_of_a_file_are_originals_with_their_rephrasings(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"index": 0, "original": "How many?", "rephrased": "What number?"}\n', encoding="utf-8")
    assert stories.read_pairs(path) == [("How many?", "What number?")]


def test_without_a_file_nearly_every_question_makes_a_pair_of_different_texts() -> None:
    pairs = encoders.reworded(stories.made_up(40, seed=0))
    assert len(pairs) >= 36
    assert all(question != rewording for question, rewording in pairs)


def test_decisions_that_differ_and_the_largest_error_are_counted() -> None:
    low, high = encoders.WINDOW
    exact = [0.0, low, high, high + 0.0001, 1.0]
    assert encoders.decided(exact, exact) == (0, 0.0)
    different, largest = encoders.decided(exact, [0.0, low - 0.001, high, high, 0.99])
    assert different == 2
    assert largest == pytest.approx(0.01)
    # What the gate's rounding hides is no difference.
    assert encoders.decided([low], [low - 0.00004])[0] == 0


def test_without_its_encoder_the_benchmark_prints_one_document_with_its_claims(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench_perturbation.main(["--items", "4", "--texts", "0", "--rounds", "1", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert [claim.get("at_least", claim.get("at_most")) for claim in document["claims"]] == [5_000, 50_000, 1]
    assert {figure["name"] for figure in document["figures"]} >= {
        f"{name} and gate, one process" for name in RULE_STRATEGIES
    }
