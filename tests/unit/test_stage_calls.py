"""What the stages of plug-ins come to in the plan of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from proctor.cli.audits.plan_results import over_budget
from proctor.domain.suite import Suite
from proctor.studies.plan import AuditPlan, plan_audit
from tests.installed_plugins import Plugins
from tests.recipes import recipes

#: A stage that does not say how often it asks, as one that is written from scratch need not.
SILENT: Final = """
from self_report import SelfReport

class Silent(SelfReport):
    kind = "silent"
    calls = lambda self, items: None

SILENT = Silent()
"""


@pytest.fixture(autouse=True)
def _installed(plugins: Plugins) -> None:
    modules, points = recipes("A stage")
    stages = {**points["proctor.stages"], "silent": "silent:SILENT"}
    plugins.install({**modules, "silent": SILENT}, {"proctor.stages": stages})


def planned(folder: Path, *stages: str, **sections: Any) -> AuditPlan:
    document = {
        "audit_suite_id": "s",
        "model_config": {"model_id": "m", "model_version": "sha256:" + "ab" * 32, "endpoint": "http://h/v1"},
        "dataset_config": {"benchmark_name": "b", "sample_size": 40},
        "perturbation_config": {"perturbation_strategy": "typo", "num_variants_per_item": 2},
        "protocol_config": {"stages": stages},
        **sections,
    }
    return plan_audit(Suite.model_validate(document), folder, folder, audits=20)


def test_the_prompts_of_a_stage_are_said_and_counted(tmp_path: Path) -> None:
    plan = planned(tmp_path, "self_report")
    assert plan.all_trials == 40 * 3 + 40
    assert (
        "before the answers the stage self_report of toy 1.2 asks 40 prompts for reports of the model on itself, "
        "which are not counted in the table"
    ) in plan.notes
    assert planned(tmp_path).all_trials == 40 * 3


def test_a_budget_that_the_stage_would_pass_is_warned_of(tmp_path: Path) -> None:
    said = over_budget(planned(tmp_path, "self_report", budget_config={"max_trials": 150}))
    assert said is not None
    assert "the audit comes to 160 trials, above max_trials 150" in said
    assert over_budget(planned(tmp_path, budget_config={"max_trials": 150})) is None


def test_a_stage_that_does_not_say_how_often_it_asks_is_named(tmp_path: Path) -> None:
    plan = planned(tmp_path, "silent")
    assert plan.all_trials == 40 * 3
    assert any("the stage silent of toy 1.2 asks prompts whose number only the audit" in note for note in plan.notes)
