"""An answering check as a suite writes it and a plan counts it: what is refused, said and left as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.audits.plan_results import over_budget
from proctor.domain.answering import is_audited
from proctor.domain.card import ContentDigests, protocol_card
from proctor.domain.endpoint import Replica
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.prices import Prices
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import SuiteProblems, parse_suite
from proctor.router.submit.endpoints import asked_endpoints, named_endpoints, resolve_endpoint
from proctor.router.submit.solvers import resolve_solvers
from proctor.router.submit.terms import terms_of
from proctor.router.terms import Role
from proctor.runtime.settings import Settings
from proctor.studies.plan import AuditPlan, plan_audit

AUDITED = "sha256:" + "ab" * 32
SOLVER = {"model": "org/solver", "endpoint": "solver"}
URL = "http://127.0.0.1:7/v1"


def document(*solvers: dict[str, Any], sections: dict[str, Any] | None = None, **check: Any) -> dict[str, Any]:
    perturbation: dict[str, Any] = {"perturbation_strategy": "typo", "num_variants_per_item": 2}
    if solvers:
        perturbation["answering_check"] = {"solvers": list(solvers), **check}
    return {
        "audit_suite_id": "s",
        "model_config": {"model_id": "org/m", "model_version": AUDITED, "endpoint": "audited"},
        "dataset_config": {"benchmark_name": "b", "sample_size": 40},
        "perturbation_config": perturbation,
        **(sections or {}),
    }


def suite(*solvers: dict[str, Any], **check: Any) -> Suite:
    return Suite.model_validate(document(*solvers, **check))


def settings(**endpoints: OperatorEndpoint) -> Settings:
    listed = {"audited": OperatorEndpoint(url="http://127.0.0.1:9/v1"), "solver": OperatorEndpoint(url=URL)}
    return Settings(endpoints={**listed, **endpoints})


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"solvers": []}, "is empty"),
        ({"solvers": [SOLVER] * 6}, "has 6 entries; keep it to 5"),
        ({"solvers": [SOLVER, SOLVER]}, "names a solver twice; name each once, and raise samples instead"),
        ({"solvers": [{**SOLVER, "endpoint": URL}]}, "is a URL, and solvers are asked only at endpoints that the oper"),
        (
            {"samples": 3},
            "has samples 3, by which nothing could be held: no p is below 0.1, and alpha is 0.05; raise sa",
        ),
        ({"samples": 4, "alpha": 0.01}, "and alpha is 0.01; raise samples to 5 or more"),
        ({"alpha": 1e-30}, "; raise alpha"),
        ({"decoding": {"temperature": 0.0}}, "has temperature 0, with which a solver gives the same answer again"),
        ({"decoding": {"temperature": 0.5, "seed": 3}}, "has a seed, with which a solver gives the same answer"),
        ({"samples": 33}, "is out of range: it must be from 2 to 32"),
        ({"solvers": [{**SOLVER, "model": "org/m"}]}, "names as a solver the model under audit"),
        ({"solvers": [{**SOLVER, "version": "sha256:abababababab"}]}, "names as a solver the model under audit"),
        ({"solvers": [{"model": "x", "endpoint": "audited", "served_name": "m"}]}, "names as a solver the model under"),
    ],
)
def test_a_check_that_could_tell_nothing_or_is_the_audited_model_s_own_is_refused_with_a_mend(
    check: dict[str, Any], said: str
) -> None:
    written = document(SOLVER)
    written["perturbation_config"]["answering_check"].update(check)
    with pytest.raises(SuiteProblems) as refused:
        parse_suite(json.dumps(written))
    assert said in " ".join(refused.value.lines())


def test_another_version_of_the_audited_model_may_solve() -> None:
    solver = {**SOLVER, "model": "org/m", "version": "sha256:" + "cd" * 32}
    assert suite(solver).perturbation.answering_check is not None
    other = suite(SOLVER).perturbation.answering_check
    assert other is not None
    assert not is_audited(other.solvers[0], "org/m", AUDITED, "audited", "m")


def test_fewer_samples_do_where_more_solvers_answer() -> None:
    assert suite(SOLVER, {**SOLVER, "model": "org/other"}, samples=3).perturbation.answering_check is not None


def test_a_suite_without_a_check_is_written_as_before_there_was_one() -> None:
    plain = suite().plain()
    assert "answering_check" not in plain["perturbation_config"]
    card = protocol_card(suite(), ContentDigests(), evaluator_version="e").plain()
    assert "answering_check" not in card["contamination_policy"]["perturbation"]
    assert "solvers" not in card["model_run_config"]["run"]


def test_a_card_holds_the_solver_the_samples_and_the_rule_and_where_it_is_asked_apart() -> None:
    card = protocol_card(suite(SOLVER, samples=7), ContentDigests(), evaluator_version="e").plain()
    held = card["contamination_policy"]["perturbation"]["answering_check"]
    assert (held["samples"], held["alpha"], held["min_skill"], held["disagreeing"]) == (7, 0.05, 0.5, "held")
    assert held["solvers"] == [{"model": "org/solver", "version": None, "chat_template": None}]
    assert card["model_run_config"]["run"]["solvers"][0]["endpoint"] == "solver"


def resolved(found: Suite, with_settings: Settings) -> tuple[Any, ...]:
    return resolve_solvers(found, resolve_endpoint(found, with_settings), with_settings)


def test_a_solver_is_asked_at_its_endpoint_by_its_name_and_as_the_suite_asks() -> None:
    (spec,) = resolved(suite({**SOLVER, "version": "sha256:" + "cd" * 32}), settings())
    assert (spec.url, spec.served_name, spec.model_version, spec.chat) == (URL, "solver", "sha256:" + "cd" * 32, False)
    (spec,) = resolved(suite({**SOLVER, "chat_template": "user", "served_name": "s"}), settings())
    assert (spec.served_name, spec.chat) == ("s", True)
    assert resolved(suite(), settings()) == ()


@pytest.mark.parametrize(
    "endpoint",
    [
        OperatorEndpoint(url="http://127.0.0.1:9/v1"),
        OperatorEndpoint(replicas=(Replica(url="http://127.0.0.1:8/v1"), Replica(url="http://127.0.0.1:9/v1"))),
        OperatorEndpoint(url="http://127.0.0.1:9/v1", backend="infer"),
    ],
)
def test_the_audited_model_is_found_behind_another_id_a_replica_and_a_contract_that_names_none(
    endpoint: OperatorEndpoint,
) -> None:
    found = suite({**SOLVER, "served_name": "m"})
    with pytest.raises(BadInputError, match=r"solvers\[0\]\.endpoint is 'solver', where .* is the model under audit"):
        resolved(found, settings(solver=endpoint))


def test_a_solver_that_the_operator_does_not_know_is_refused_with_those_that_are_known() -> None:
    found = suite({**SOLVER, "endpoint": "nobody"})
    with pytest.raises(BadInputError, match=r"'nobody', which is not the id .*known: audited, solver\); have the oper"):
        resolved(found, settings())


def test_solvers_are_among_the_endpoints_that_a_suite_asks_and_names() -> None:
    found = suite(SOLVER, {**SOLVER, "model": "org/other"})
    assert named_endpoints(found) == ("audited", "solver", "solver")
    assert list(asked_endpoints(found, settings())) == [
        "model_config.endpoint",
        "perturbation_config.answering_check.solvers[0].endpoint",
        "perturbation_config.answering_check.solvers[1].endpoint",
    ]


def test_a_solver_s_tokens_have_its_endpoint_s_prices_and_a_ceiling_of_cost_needs_them() -> None:
    priced = OperatorEndpoint(url=URL, input_price_per_million=1.0, output_price_per_million=2.0)
    terms = terms_of(suite(SOLVER), settings(solver=priced))
    assert terms.prices_of(Role.CHECKING, 0) == Prices(input_per_million=1.0, output_per_million=2.0)
    assert terms.prices_of(Role.CHECKING, 1) is None
    limited = suite(SOLVER, sections={"budget_config": {"max_cost": 5}})
    with pytest.raises(BadInputError, match="the endpoint 'solver' has no prices"):
        terms_of(limited, settings(audited=priced))


def planned(folder: Path, found: Suite) -> AuditPlan:
    return plan_audit(found, folder, folder, audits=20)


def test_a_plan_counts_the_solvers_prompts_and_says_what_they_could_find(tmp_path: Path) -> None:
    plan = planned(tmp_path, suite(SOLVER, {**SOLVER, "model": "org/other"}, samples=3))
    assert plan.all_trials == 40 * 3 + 40 * 3 * 3 * 2
    (asked,) = [note for note in plan.notes if "the solvers" in note]
    assert "the solvers org/solver, org/other are asked 720 prompts, with at most 512 tokens of answer each" in asked
    assert any("would be held by 3 samples of each wording" in note for note in plan.notes)
    assert any("3 samples hold nothing where only one solver is heard: 4 are the fewest" in one for one in plan.notes)


def test_a_plan_without_a_check_says_nothing_of_it(tmp_path: Path) -> None:
    plan = planned(tmp_path, suite())
    assert plan.all_trials == 40 * 3
    assert not any("solver" in note for note in plan.notes)


def test_enough_samples_for_one_solver_are_not_warned_of_and_a_budget_that_they_pass_is(tmp_path: Path) -> None:
    plan = planned(tmp_path, suite(SOLVER, sections={"budget_config": {"max_trials": 300}}))
    assert not any("only one solver" in note for note in plan.notes)
    said = over_budget(plan)
    assert said is not None
    assert "the audit comes to 720 trials, above max_trials 300" in said


def test_the_same_plan_says_the_same_each_time(tmp_path: Path) -> None:
    assert planned(tmp_path, suite(SOLVER)).notes == planned(tmp_path, suite(SOLVER)).notes
