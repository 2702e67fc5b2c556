"""What Proctor's evidence and gate, and others' estimators, say of a cell's stored grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from planted_leaks import constat
from planted_leaks.benchmarks import KINDS, OPTIONS
from planted_leaks.cells import NONE, Cell
from planted_leaks.grades import Grades, outcome
from planted_leaks.routers import PROTOCOL
from proctor.domain.canonical import canonical_json
from proctor.domain.decision import Decision
from proctor.domain.estimate import Estimate
from proctor.domain.evidence import Evidence, FreshEvidence, NoiseEvidence, PerturbationEvidence
from proctor.domain.panel import Panel, ReferenceModel
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import parse_suite
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer, pair_answers
from proctor.evidence.fresh.arms import FreshLimits, weigh_arms
from proctor.evidence.intervals import wilson
from proctor.evidence.noise.channel import noise_evidence
from proctor.evidence.noise.leaks import Reading
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.protocol.channel import protocol_evidence
from proctor.scorer.policy import decide

_LEVEL: Final = 0.95
PERTURBATION: Final = "perturbation"
FRESH: Final = "fresh"


class Judged(NamedTuple):
    """One cell, and all that is said of it."""

    cell: Cell
    items: int
    canonical: Estimate
    """Accuracy, as a fraction."""
    leaked: tuple[float, float]
    """Canonical and reworded accuracy over the items that leak in the runs of this seed."""
    others: tuple[float, float]
    """The same over the others."""
    perturbation: PerturbationEvidence
    decision: Decision
    fresh: FreshEvidence
    beside_panel: FreshEvidence
    """The same beside a panel of reference models: the other clean models of the benchmark, which say how much harder
    the fresh items are."""
    precision: float | None
    """Share of leaked items among the ranked ones; None where none is ranked."""
    ranked: int
    constat: constat.Measured | None
    noise: NoiseEvidence | None


def judge_all(found: Mapping[Cell, Grades], *, replicates: int = constat.REPLICATES) -> list[Judged]:
    """Judge every cell; the clean cells of its benchmark are ConStat's reference models."""
    return [_judge(cell, grades, found, replicates) for cell, grades in sorted(found.items())]


class _Weighed(NamedTuple):
    """What the channels say of some grades, and the gate."""

    perturbation: PerturbationEvidence
    fresh: FreshEvidence
    decision: Decision


def verdicts_of(kind: str, grades: Grades) -> tuple[Mapping[str, str], str]:
    """Channel → its verdict, and the decision by the wording."""
    found = _weigh(kind, grades, None)
    return {PERTURBATION: found.perturbation.verdict, FRESH: found.fresh.verdict}, found.decision.outcome


def _weigh(kind: str, grades: Grades, panel: Panel | None) -> _Weighed:
    suite, chance = _suite(kind), _chance(kind)
    direct = [*_rows(Arm.CANONICAL, grades.canonical), *_reworded(grades)]
    perturbation = perturbation_evidence(pair_answers(direct), suite.scoring, suite.governance, chance)
    protocol = protocol_evidence(direct, expected_arms=(Arm.CANONICAL, Arm.PERTURBED))
    limits = FreshLimits(
        allowed_points=suite.scoring.max_allowed_contaminated_items_pct,
        block_points=suite.governance.block_deployment_above_contaminated_pct,
        alpha=suite.scoring.significance_alpha,
        level=_LEVEL,
        guess_chance=chance,
    )
    both = [*_rows(Arm.CANONICAL, grades.canonical), *_rows(Arm.FRESH, grades.fresh, "f")]
    decision = decide(Evidence.of({"perturbation": perturbation, "protocol": protocol}, {}), suite)
    return _Weighed(perturbation, weigh_arms(both, limits, panel=panel), decision)


def _judge(cell: Cell, grades: Grades, found: Mapping[Cell, Grades], replicates: int) -> Judged:
    weighed, beside_panel = _weigh(cell.kind, grades, None), _weigh(cell.kind, grades, _panel(cell, found)).fresh
    leaked = np.array([sign == "1" for sign in grades.leaked])
    right = np.array([sign == "1" for sign in grades.canonical])
    reworded = _reworded_shares(grades)
    ranked = [item.item_id for item in weighed.perturbation.suspected]
    hits = sum(grades.leaked[int(item)] == "1" for item in ranked)
    clean = [_for_constat(other) for other in _clean(cell, found)]
    return Judged(
        cell=cell,
        items=len(grades.canonical),
        canonical=wilson(int(right.sum()), len(right), _LEVEL),
        leaked=_accuracies(right, reworded, leaked),
        others=_accuracies(right, reworded, ~leaked),
        perturbation=weighed.perturbation,
        decision=weighed.decision,
        fresh=weighed.fresh,
        beside_panel=beside_panel,
        precision=hits / len(ranked) if ranked else None,
        ranked=len(ranked),
        constat=constat.constat(
            _for_constat(grades),
            clean,
            chance=_chance(cell.kind),
            rng=np.random.default_rng(cell.seed),
            replicates=replicates,
        ),
        noise=_noise(grades, _suite(cell.kind)),
    )


def _clean(cell: Cell, found: Mapping[Cell, Grades]) -> Iterator[Grades]:
    yield from _clean_by_name(cell, found).values()


def _clean_by_name(cell: Cell, found: Mapping[Cell, Grades]) -> dict[str, Grades]:
    clean = ((other, grades) for other, grades in sorted(found.items()) if other.leak == NONE and other != cell)
    return {other.name: grades for other, grades in clean if other.kind == cell.kind}


def _panel(cell: Cell, found: Mapping[Cell, Grades]) -> Panel:
    """The benchmark's other clean models."""
    clean = _clean_by_name(cell, found)
    return Panel(models=tuple(_reference(name, clean[name]) for name in sorted(clean)))


def _reference(name: str, grades: Grades) -> ReferenceModel:
    signs = [*_rows(Arm.CANONICAL, grades.canonical), *_rows(Arm.FRESH, grades.fresh, "f")]
    right = sorted(one.item_id for one in signs if one.outcome is Outcome.CORRECT)
    wrong = sorted(one.item_id for one in signs if one.outcome is not Outcome.CORRECT)
    return ReferenceModel(name=name, right=tuple(right), wrong=tuple(wrong))


def _for_constat(grades: Grades) -> constat.Answers:
    right = np.array([sign == "1" for sign in grades.canonical], dtype=np.float64)
    return constat.Answers(right, _reworded_shares(grades))


def _reworded_shares(grades: Grades) -> constat.FloatArray:
    arms = np.array([list(arm) for arm in grades.reworded])
    asked = arms != " "
    return np.where(asked.any(0), (arms == "1").sum(0) / np.maximum(1, asked.sum(0)), 0.0)


def _accuracies(right: Any, reworded: Any, among: Any) -> tuple[float, float]:
    return float(right[among].mean()), float(reworded[among].mean())


def _rows(arm: Arm, signs: str, prefix: str = "") -> Iterator[Answer]:
    for place, written in enumerate(signs):
        if (found := outcome(written)) is not None:
            yield Answer(arm, f"{prefix}{place:05d}", found)


def _reworded(grades: Grades) -> Iterator[Answer]:
    for arm in grades.reworded:
        yield from _rows(Arm.PERTURBED, arm)


def _noise(grades: Grades, suite: Suite) -> NoiseEvidence | None:
    if not grades.routers:
        return None
    rows = [row for arm, signs in grades.routers.items() for row in _rows(Arm(arm), signs)]
    items = [f"{place:05d}" for place in range(len(grades.canonical))]
    # Routers that work by rule state no answer.
    readings = {(condition, item): Reading((None,) * condition.routers, None)
                for condition in PROTOCOL.conditions for item in items}  # fmt: skip
    return noise_evidence("study", rows, readings, dict.fromkeys(items, "?"), PROTOCOL, suite.scoring)


def _chance(kind: str) -> float:
    return 1 / OPTIONS if kind == "letters" else 0.0


def _suite(kind: str) -> Suite:
    """The defaults of a suite: the limits that a user who changes none has."""
    written = {
        "audit_suite_id": f"planted-{kind}",
        "model_config": {"model_id": "study/model", "model_version": "sha256:" + "0" * 64, "endpoint": "study"},
        "dataset_config": {"benchmark_name": f"planted-{kind}"},
        "perturbation_config": {"perturbation_strategy": "option_shuffle",
                                "num_variants_per_item": KINDS[kind].variants},
        "governance": {"audit_owner": "study"},
    }  # fmt: skip
    return parse_suite(canonical_json(written))
