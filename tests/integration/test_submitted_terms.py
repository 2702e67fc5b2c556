"""What an audit may use and whom it may ask, from the suite to the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.local import settings_to_come
from proctor.cli.main import main
from proctor.domain.errors import BadInputError, ExitCode
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.suite_budget import BudgetSection
from proctor.formats.suites import load_suite
from proctor.router.audit import AuditView, view
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.router.submit.terms import terms_of
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

PRICED = OperatorEndpoint(url="https://models.example/v1", input_price_per_million=1, output_price_per_million=2)


class Office:
    """Where suites are put on record."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = Settings(home=home, endpoints={"priced": PRICED})
        self.records = Records(self.settings.records_url)
        self.artifacts = LocalArtifacts(Path(self.settings.artifacts))
        (home / "items.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')

    def write(self, endpoint: str = "priced", **sections: Any) -> Path:
        """A suite's file."""
        dataset = {"benchmark_name": "sums", "path": "items.jsonl"} | sections.pop("dataset_config", {})
        document = {
            "audit_suite_id": "sums-suite",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": endpoint},
            "dataset_config": dataset,
            "perturbation_config": {"perturbation_strategy": "wordings"},
            **sections,
        }
        path = self.home / "suite.json"
        path.write_text(json.dumps(document))
        return path

    def put(self, endpoint: str = "priced", **sections: Any) -> AuditView:
        """The audit that a suite is put on record as, or goes on with."""
        data = gather(load_suite(self.write(endpoint, **sections)), self.home, self.settings.bundle)
        put = submit(data, self.settings, self.records, self.artifacts)
        return view(self.records, put.record.audit_id)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_an_audit_that_is_started_again_goes_on_with_the_budget_of_that_day(office: Office) -> None:
    first = office.put(budget_config={"max_trials": 10, "max_cost": 1})
    again = office.put(budget_config={"max_trials": 20})
    assert again.audit_id == first.audit_id
    assert first.inputs.terms.budget == BudgetSection(max_trials=10, max_cost=1)
    assert again.inputs.terms.budget == BudgetSection(max_trials=20)
    assert again.inputs.terms.answer == PRICED.prices


def test_a_ceiling_of_cost_without_prices_leaves_nothing_on_record(office: Office) -> None:
    with pytest.raises(BadInputError, match="has no prices"):
        office.put("http://127.0.0.1:9/v1", budget_config={"max_cost": 1})
    assert office.records.audits() == []


@pytest.mark.parametrize(
    ("endpoint", "sections", "message"),
    [
        ("https://elsewhere.example/v1", {}, "which no endpoint here covers"),
        ("priced", {"dataset_config": {"private": True}}, "not approved for private datasets"),
    ],
)
def test_an_endpoint_that_may_not_be_asked_leaves_nothing_on_record(
    office: Office, endpoint: str, sections: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        office.put(endpoint, **sections)
    assert office.records.audits() == []


def test_a_run_whose_endpoint_may_not_be_asked_starts_no_stack(
    office: Office, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = office.write("https://elsewhere.example/v1")
    assert main(["audit", "run", str(path), "--home", str(tmp_path / "stack")]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "PROCTOR_OTHER_ENDPOINTS=public" in captured.err
    assert not (tmp_path / "stack").exists()


def test_the_local_stack_s_own_models_may_see_private_items_and_cost_nothing(office: Office, tmp_path: Path) -> None:
    suite = load_suite(office.write("local-triton", dataset_config={"private": True}, budget_config={"max_cost": 1}))
    found = terms_of(suite, settings_to_come(tmp_path / "stack"))
    assert found.answer is not None
    assert found.answer.of(1_000_000, 1_000_000) == 0
