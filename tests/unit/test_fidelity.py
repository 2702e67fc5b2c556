"""What rewording costs a clean model, measured, kept, and used as a control."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from proctor.domain.errors import StoreError
from proctor.domain.fidelity import Fidelity
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import score_inflation
from proctor.evidence.perturbation.clean_control import control_answers
from proctor.evidence.perturbation.control import controlled_inflation
from proctor.perturbation.library.fidelity import CleanModel, fidelities, measure_fidelity, record_fidelity
from tests.unit.samples import paired, sample, samples

MODEL = CleanModel("clean", "sha256:" + "c" * 64, "trained before the benchmark was written")


class FidelityMemory:
    """The record store's part for fidelities, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, str, str]] = {}

    def fidelity_put(self, key: str, strategy: str, benchmark: str, row: Mapping[str, Any]) -> bool:
        if key in self.rows:
            return False
        self.rows[key] = (strategy, benchmark, json.dumps(row))
        return True

    def fidelity_rows(self, strategy: str, benchmark: str) -> dict[str, str]:
        return {key: row for key, (*named, row) in sorted(self.rows.items()) if named == [strategy, benchmark]}


def _measured(answers: PairedAnswers, **changes: Any) -> Fidelity:
    arguments: dict[str, Any] = {"strategy": "wordings", "benchmark": "b", "variants": "sha256:v", "model": MODEL}
    return measure_fidelity(answers, **(arguments | changes))


def test_the_cost_is_canonical_minus_reworded_accuracy_in_points() -> None:
    found = _measured(paired([1, 1, 0, 1], [1, 2, 1, 0], [2, 2, 2, 1]))
    assert found.cost.value == pytest.approx(100 * (3 / 4 - (0.5 + 1 + 0.5 + 0) / 4))
    assert found.accuracy.value == 0.75
    assert found.n_items == 4


@given(samples(min_items=1))
def test_the_interval_is_that_of_score_inflation_and_no_answer_is_lost(answers: PairedAnswers) -> None:
    found = _measured(answers)
    assert found.cost == score_inflation(answers, 0.95)
    kept = control_answers(found)
    rows = [(bool(c), int(r), int(t)) for c, r, t in zip(answers.canonical, answers.right, answers.total, strict=True)]
    back = [(bool(c), int(r), int(t)) for c, r, t in zip(kept.canonical, kept.right, kept.total, strict=True)]
    assert sorted(back) == sorted(rows)


def test_a_model_that_was_asked_nothing_has_no_cost() -> None:
    found = _measured(paired([], [], []))
    assert (found.n_items, found.cost.value, found.accuracy.value, control_answers(found).n) == (0, None, None, 0)


def test_what_is_on_record_controls_an_audit_like_the_answers_themselves() -> None:
    rng = np.random.default_rng(5)
    audited = sample(rng, rng.beta(2, 1, 300), variants=3, leaked=0.3)
    clean = sample(rng, rng.beta(2, 1, 200), variants=3)
    rows = FidelityMemory()
    record_fidelity(rows, _measured(clean))
    (kept,) = fidelities(rows, "wordings", "b")
    direct = controlled_inflation(audited, clean, level=0.95, alpha=0.05)
    assert controlled_inflation(audited, control_answers(kept), level=0.95, alpha=0.05) == direct


def test_a_measurement_is_recorded_once_and_never_changed() -> None:
    rows = FidelityMemory()
    first = _measured(paired([1, 1, 0], [1, 0, 0], [1, 1, 1]))
    assert record_fidelity(rows, first)
    assert not record_fidelity(rows, first)
    with pytest.raises(StoreError, match=r"for the model 'clean' is on record .* measured with other figures"):
        record_fidelity(rows, _measured(paired([1, 1, 1], [1, 0, 0], [1, 1, 1])))
    assert fidelities(rows, "wordings", "b") == (first,)


def test_each_strategy_benchmark_model_and_set_of_rewordings_has_its_own_measurement() -> None:
    rows, answers = FidelityMemory(), paired([1, 0], [1, 1], [1, 1])
    changes: tuple[dict[str, Any], ...] = (
        {}, {"strategy": "imported"}, {"benchmark": "c"}, {"variants": "sha256:w"},
        {"model": MODEL._replace(digest="sha256:" + "d" * 64)},
    )  # fmt: skip
    assert all(record_fidelity(rows, _measured(answers, **change)) for change in changes)
    assert len(fidelities(rows, "wordings", "b")) == 3
    assert fidelities(rows, "nothing", "b") == ()


def test_a_damaged_row_is_one_error_with_the_mend() -> None:
    rows = FidelityMemory()
    rows.rows["k"] = ("wordings", "b", "{}")
    with pytest.raises(StoreError, match="row k of the table strategy_fidelities is damaged"):
        fidelities(rows, "wordings", "b")
