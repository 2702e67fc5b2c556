"""Audits of served cells: how their grades are held against the stored ones, kept, and told on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planted_leaks.asking import Asking
from planted_leaks.benchmarks import KINDS, Benchmark, Question, prompt
from planted_leaks.cells import EXACT, NONE, Cell
from planted_leaks.end_to_end import suite_of, weights_digest
from planted_leaks.grades import Grades
from planted_leaks.judging import Judged, judge_all
from planted_leaks.preparing import Prepared
from planted_leaks.rewordings import Admitted
from planted_leaks.served import CANONICAL, REWORDED, Compared, Served, compared, read_served, served, write_served
from planted_leaks.served_section import served_section
from proctor.domain.canonical import canonical_json
from proctor.domain.item import Item
from proctor.domain.suite import PromptSection
from proctor.domain.suite_problems import parse_suite
from proctor.domain.trial import Outcome
from tests.support import REPOSITORY

_CELL = Cell("facts", EXACT, 16, 0, 2)
_URL, _DIGEST = "http://127.0.0.1:9/v1", "sha256:" + "7" * 64


def _prepared() -> Prepared:
    """Three items, of which the second has one admitted rewording, and the others two."""
    questions = tuple(
        Question(Item(item_id=f"i{n}", question=f"Where is {n}?", target="here"), (f"Find {n}.", f"Seek {n}."), ())
        for n in range(3)
    )
    rows = [
        {"item": {"item_id": one.item.item_id}, "variant": {"question": text}}
        for place, one in enumerate(questions)
        for text in one.reworded[: 1 if place == 1 else 2]
    ]
    return Prepared(Benchmark(KINDS["facts"], questions, questions[:1], ()), Admitted(rows))


def _outcomes(wrong: str = "") -> dict[tuple[str, str], Outcome | None]:
    """All right but for one prompt's answer."""
    benchmark, admitted = _prepared()
    texts = [(one.item.item_id, one.item.question) for one in benchmark.items]
    texts += [(item_id, text) for item_id, variants in admitted.by_item.items() for text, _ in variants]
    return {
        (item_id, prompt(text, ())): Outcome.INCORRECT if text == wrong else Outcome.CORRECT for item_id, text in texts
    }


def _result(**changed: Any) -> dict[str, Any]:
    return {
        "accuracy_canonical": 0.51, "accuracy_perturbed": 0.5, "score_inflation_points": 1.0,
        "score_inflation_points_ci": [-1.0, 3.0], "contamination_score": 0.0196, "p_value": 0.2,
        "decision": "approve", "reason_codes": ["within_limits"], **changed,
    }  # fmt: skip


def _served(cell: Cell = _CELL, **changed: Any) -> Served:
    arms = {CANONICAL: Compared(500, 3, 2), REWORDED: Compared(1_490, 9, 4)}
    return served(cell, _result(**changed), weights=_DIGEST, server="vLLM 0.32.0, bfloat16", arms=arms)


def test_an_audits_outcomes_stand_where_the_study_has_its_own() -> None:
    found = Asking(*_prepared()).grades_of(_outcomes(wrong="Seek 2."))
    assert (found.canonical, found.reworded) == ("111", ("111", "1 0", "   "))
    assert found.fresh == ""


def test_an_answer_that_never_came_is_graded_as_unreadable_and_a_prompt_that_was_never_asked_is_refused() -> None:
    outcomes = _outcomes()
    outcomes["i0", prompt("Find 0.", ())] = None
    assert Asking(*_prepared()).grades_of(outcomes).reworded == ("-11", "1 1", "   ")
    del outcomes["i2", prompt("Where is 2?", ())]
    with pytest.raises(LookupError, match=r"i2 was not asked"):
        Asking(*_prepared()).grades_of(outcomes)


def test_differing_grades_are_counted_by_arm_and_by_who_is_right() -> None:
    stored = Grades("100", "110", ("0-1", "1 1"), "0011")
    answered = Grades("", "011", ("1-1", "0 1"), "")
    assert compared(answered, stored) == {CANONICAL: Compared(3, 2, 1), REWORDED: Compared(5, 2, 1)}
    assert compared(stored, stored) == {CANONICAL: Compared(3, 0, 0), REWORDED: Compared(5, 0, 0)}


@pytest.mark.parametrize(
    ("canonical", "reworded"),
    [("11", ("11", "1 ")), ("111", ("111",)), ("111", ("111", "111"))],
    ids=["an item too few", "a rewording too few", "a rewording where there was none"],
)
def test_grades_of_other_prompts_are_not_compared(canonical: str, reworded: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"asked|stored"):
        compared(Grades("", canonical, reworded, ""), Grades("100", "110", ("011", "1 1"), ""))


def test_what_is_written_is_read_again_in_the_order_of_the_cells(tmp_path: Path) -> None:
    other = _served(Cell("worked", EXACT, 16, 0, 2), contamination_score=None)
    path = tmp_path / "study" / "served.jsonl"
    assert read_served(path) == {}
    write_served(path, [other, _served()])
    assert list(read_served(path).values()) == [_served(), other]
    assert [json.loads(line)["cell"]["kind"] for line in path.read_text().splitlines()] == ["facts", "worked"]


@pytest.mark.parametrize("cell", [_CELL, Cell("letters", NONE, 0, 0, 1), Cell("worked", EXACT, 64, 5, 13)])
def test_a_cell_is_told_by_its_name(cell: Cell) -> None:
    assert Cell.named(cell.name) == cell


@pytest.mark.parametrize("name", ["facts-exact-16-s2", "facts-exact-16-0-2", "facts-exact-x-0-s2", ""])
def test_what_is_no_cells_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no cell's name"):
        Cell.named(name)


def test_a_served_cell_is_audited_by_the_studys_template_decoding_and_limits_and_no_other_channel() -> None:
    suite = parse_suite(canonical_json(suite_of(_CELL, _prepared(), url=_URL, digest=_DIGEST)))
    assert suite.fresh is None
    assert suite.dataset.selection == "first"
    assert suite.dataset.sample_size == 3
    assert suite.decoding.max_tokens == KINDS["facts"].max_tokens
    assert suite.decoding.temperature == 0
    assert suite.metric.extractor == "exact"
    assert suite.perturbation.perturbation_strategy == "imported"
    assert suite.prompt == PromptSection(), "as the study's own prompts are written"


def test_the_digest_is_of_the_weights_alone(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    assert weights_digest(tmp_path) == "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"


def _judged() -> list[Judged]:
    rng = np.random.default_rng(4)

    def signs() -> str:
        return "".join("1" if one else "0" for one in rng.random(500) < 0.5)

    return judge_all({_CELL: Grades("1" * 100 + "0" * 400, signs(), (signs(),) * 3, signs())}, replicates=1)


def test_the_page_has_each_served_cell_beside_its_stored_grades_and_counts_what_differs() -> None:
    judged = _judged()
    section = served_section({_CELL: _served()}, judged)
    mine, stored = [line for line in section.splitlines() if line.startswith("| short facts")]
    assert "| served | 51.0 | 50.0 | 1.0 [-1.0, 3.0] | 0.020 | 0.2 | approve | canonical 3 of 500;" in mine
    assert "| in training |" in stored
    assert f"| {judged[0].decision.outcome} |" in stored
    assert "12 of 1,990 grades differ: 6 where the served model is right, 6 where it is not." in section
    assert "vLLM 0.32.0, bfloat16" in section
    assert section.endswith(f"Not served so far: {KINDS['letters'].title}; {KINDS['worked'].title}.")


def test_a_cell_whose_decision_is_another_when_it_is_served_is_named() -> None:
    judged = _judged()
    other = "block" if judged[0].decision.outcome != "block" else "approve"
    assert "another in 0 of 1. Not" in served_section(
        {_CELL: _served(decision=judged[0].decision.outcome.value)}, judged
    )
    assert f"another in 1 of 1: {_CELL.name}. Not" in served_section({_CELL: _served(decision=other)}, judged)


def test_without_a_served_cell_the_page_says_so() -> None:
    assert served_section({}, _judged()) == "No cell was served yet."


def test_a_cell_whose_stored_grades_are_not_published_stands_alone_and_the_page_says_why() -> None:
    section = served_section({_CELL: _served()}, [])
    assert "| in training |" not in section
    assert "12 of 1,990 grades differ" in section
    assert "not published yet" in section


def test_what_is_published_of_served_cells_can_be_read_and_is_of_the_study() -> None:
    for cell, one in read_served(REPOSITORY / "docs" / "study" / "served.jsonl").items():
        assert cell.kind in KINDS
        assert one.weights.startswith("sha256:")
        assert one.arms[CANONICAL].answers <= one.arms[REWORDED].answers
