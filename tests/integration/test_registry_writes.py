"""What stands on record, written to a real MLflow server: tags, description, artifacts and alias."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.domain.registered_version import RegistryKind, registered_name
from proctor.registry import writing
from proctor.registry.description import BEGIN, END
from proctor.registry.mlflow_client import MlflowClient, ModelVersion
from proctor.registry.mlflow_registry import APPROVED_ALIAS, MlflowRegistry
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError
from proctor.registry.standing_record import standing_record
from proctor.runtime.records.audited_versions import VersionName
from proctor.runtime.records.standings import NewSignOff
from tests.integration.registry_support import mlflow_server
from tests.standing_audits import PAGE, DecidedAudits, decided_audits, sha
from tests.support import free_port

#: The first test of the file also starts the MLflow server, which migrates an empty database.
pytestmark = pytest.mark.timeout(150)
APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK
ADA = SignedBy(name="Ada", via="terminal")


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as uri:
        yield uri


@pytest.fixture
def client(mlflow_uri: str) -> Iterator[MlflowClient]:
    with MlflowClient(mlflow_uri) as opened:
        yield opened


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path_factory.mktemp("home"), dashboard_url="https://proctor.example.org") as opened:
        yield opened


@pytest.fixture
def audits(record: DecidedAudits) -> DecidedAudits:
    """One record for all: each test has a model of its own."""
    record.now = datetime.now(UTC)
    return record


@pytest.fixture
def model_id() -> str:
    return f"org/model-{uuid4().hex[:12]}"


class Written:
    """A model of one version in the registry, and what stands of it there."""

    def __init__(self, uri: str, client: MlflowClient, audits: DecidedAudits, model_id: str) -> None:
        self.uri, self.client, self.audits, self.model_id = uri, client, audits, model_id
        self.name = registered_name(model_id)

    def register(self, weights: str = "1", *, run_id: str = "", description: str = "") -> str:
        self.client.create_model(self.name, tags={}, description="")
        values = {
            "name": self.name, "source": "s3://bucket/model", "description": description,
            "tags": [{"key": "proctor.model_digest", "value": sha(weights)}], **({"run_id": run_id} if run_id else {}),
        }  # fmt: skip
        answer = httpx.post(f"{self.uri}/api/2.0/mlflow/model-versions/create", json=values, trust_env=False)
        return str(answer.json()["model_version"]["version"])

    def decide(self, outcome: DecisionOutcome, **named: object) -> DecisionEvent:
        event = self.audits.decide(self.model_id, outcome, **named)  # type: ignore[arg-type]
        self.audits.write(self.uri, event)
        return event

    def sign(self, event: DecisionEvent, verb: Verb, outcome: DecisionOutcome, reason: str = "Known.") -> None:
        wanted = NewSignOff(verb, outcome, ADA, reason, "T-1")
        self.audits.records.standings.sign(event.audit_id, wanted, key=self.audits.key)
        self.audits.write(self.uri, event)

    def sequence(self, event: DecisionEvent) -> int:
        standing = self.audits.records.standings.standing_of(event.audit_id)
        assert standing is not None
        return standing.sequence

    def now(self, version: str = "1") -> ModelVersion:
        return self.client.version(self.name, version)

    def decision(self, version: str = "1") -> tuple[str, bool]:
        found = self.now(version)
        return found.tags["proctor.decision"], APPROVED_ALIAS in found.aliases


@pytest.fixture
def written(mlflow_uri: str, client: MlflowClient, audits: DecidedAudits, model_id: str) -> Written:
    return Written(mlflow_uri, client, audits, model_id)


def test_a_version_has_its_decision_its_figures_and_where_its_report_is(written: Written) -> None:
    event = written.decide(APPROVE)
    tags = written.now().tags
    assert written.decision() == ("approve", True)
    assert (tags["proctor.contamination_score"], tags["proctor.contamination_score_interval"]) == (
        "0.1451",
        "[0.1131, 0.1764]",
    )
    assert tags["proctor.report_sha256"] == event.report_digest.removeprefix("sha256:")
    assert tags["proctor.report_url"] == f"https://proctor.example.org/audits/{event.audit_id}/report"
    assert tags["proctor.suite.facts.decision"] == "approve"
    assert tags["proctor.suite.facts.audit_id"] == event.audit_id
    assert tags["proctor.suites"] == "1: 1 approve"
    assert tags["proctor.record_entry"] == str(written.sequence(event))
    assert tags["proctor.audit_id"] == event.audit_id


def test_the_evidence_lies_with_the_version_and_bears_out_its_tags(written: Written, client: MlflowClient) -> None:
    event = written.decide(BLOCK)
    tags = written.now().tags
    assert tags["proctor.evidence"] == f"runs:/{tags['proctor.run_id']}/proctor"
    run = client.run(tags["proctor.run_id"])
    assert run is not None
    root = run.artifact_uri.removeprefix("mlflow-artifacts:/") + f"/proctor/{event.audit_id}"
    found = {
        name: client.artifact(f"{root}/{name}")
        for name in ("suite.json", "report.json", "report.html", "report.sha256", "attestation.json")
    }
    assert found["report.html"] == PAGE
    assert found["suite.json"] == b'{"audit_suite_id": "facts"}'
    assert hashlib.sha256(found["report.json"] or b"").hexdigest() == tags["proctor.report_sha256"]
    assert found["report.sha256"] == f"{tags['proctor.report_sha256']}  report.json\n".encode()
    assert "sha256:" + hashlib.sha256(found["attestation.json"] or b"").hexdigest() == tags["proctor.attestation"]
    assert json.loads(found["attestation.json"] or b"")["signatures"]


def test_a_version_that_came_out_of_a_run_has_its_evidence_there(written: Written, client: MlflowClient) -> None:
    run = client.create_run("training", name="a training", tags={}, now_ms=1)
    written.register(run_id=run.run_id)
    written.decide(APPROVE)
    tags = written.now().tags
    assert (tags["proctor.evidence"], tags.get("proctor.run_id")) == (f"runs:/{run.run_id}/proctor", None)


def test_nothing_is_logged_into_a_run_that_somebody_else_put_into_the_tag(
    written: Written, client: MlflowClient
) -> None:
    foreign = client.create_run("training", name="a training", tags={}, now_ms=1)
    version = written.register()
    client.set_tag(written.name, version, "proctor.run_id", foreign.run_id)
    written.decide(APPROVE)
    assert written.now().tags["proctor.run_id"] != foreign.run_id


def test_where_artifacts_are_out_of_the_server_s_reach_the_tag_says_so_and_the_decision_stands(
    written: Written,
) -> None:
    made = {"name": f"elsewhere-{uuid4().hex}", "artifact_location": "s3://bucket/runs"}
    api = f"{written.uri}/api/2.0/mlflow"
    experiment = httpx.post(f"{api}/experiments/create", json=made, trust_env=False).json()["experiment_id"]
    said = {"experiment_id": experiment, "start_time": 1}
    run_id = httpx.post(f"{api}/runs/create", json=said, trust_env=False).json()["run"]["info"]["run_id"]
    written.register(run_id=run_id)
    written.decide(APPROVE)
    assert written.now().tags["proctor.evidence"] == f"not logged: the artifacts of run {run_id} are in s3"
    assert written.decision() == ("approve", True)


def test_the_worst_of_several_suites_is_the_version_s_decision(written: Written) -> None:
    written.decide(APPROVE, suite="facts")
    second = written.decide(BLOCK, suite="numbers", text="Too much.")
    tags = written.now().tags
    assert written.decision() == ("block", False)
    assert tags["proctor.audit_id"] == second.audit_id
    assert (tags["proctor.suite.facts.decision"], tags["proctor.suite.numbers.decision"]) == ("approve", "block")
    assert tags["proctor.suites"] == "2: 1 block, 1 approve"
    assert tags["proctor.reasons"] == "because: numbers: Too much."


def test_a_suite_that_a_trigger_asked_for_and_nobody_ran_is_a_review(written: Written) -> None:
    version = written.register()
    first = written.audits.ask(written.name, version, "facts")
    second = written.audits.ask(written.name, version, "numbers")
    written.decide(APPROVE, suite="facts", request=first)
    assert written.decision() == ("review", False)
    tags = written.now().tags
    assert tags["proctor.suite.numbers.decision"] == "review"
    assert "its audit is asked for and not begun" in tags["proctor.reasons"]
    written.decide(APPROVE, suite="numbers", request=second)
    assert written.decision() == ("approve", True)


def test_the_version_that_a_trigger_asked_about_is_written_and_no_other_of_the_same_weights(written: Written) -> None:
    written.register()
    second = written.register()
    written.decide(APPROVE, request=written.audits.ask(written.name, second, "facts"))
    assert written.decision(second) == ("approve", True)
    assert "proctor.decision" not in written.now("1").tags


def test_a_sign_off_and_its_end_are_written(written: Written) -> None:
    event = written.decide(BLOCK)
    written.sign(event, Verb.OVERRIDE, APPROVE, "The leak is of other items.")
    tags = written.now().tags
    assert written.decision() == ("approve", True)
    assert tags["proctor.reasons"].startswith(
        "signed_off: Ada signed approve after block: The leak is of other items. (T-1); because: It is so."
    )
    assert tags["proctor.suite.facts.said"] == "approve signed by Ada after block"
    assert tags["proctor.record_entry"] == str(written.sequence(event))
    written.sign(event, Verb.REJECT, BLOCK)
    assert written.decision() == ("block", False)


def test_an_approval_past_its_time_loses_its_alias(written: Written) -> None:
    event = written.audits.decide(written.model_id, REVIEW)
    wanted = NewSignOff(Verb.APPROVE, APPROVE, ADA, "For a week.", "T-2", expires_after_days=7)
    written.audits.records.standings.sign(event.audit_id, wanted, key=written.audits.key)
    written.audits.write(written.uri, event)
    assert written.decision() == ("approve", True)
    written.audits.now += timedelta(days=8)
    written.audits.write(written.uri, event)
    assert written.decision() == ("review", False)
    assert written.now().tags["proctor.reasons"].startswith("approval_ended: The time of the approval is over.")


def test_an_event_that_comes_late_writes_what_stands_by_then(written: Written) -> None:
    first = written.decide(APPROVE)
    second = written.decide(BLOCK)
    written.audits.write(written.uri, first)
    tags = written.now().tags
    assert (tags["proctor.audit_id"], *written.decision()) == (second.audit_id, "block", False)


def test_an_event_that_comes_late_does_not_take_the_alias_from_a_version_approved_later(written: Written) -> None:
    first = written.decide(APPROVE, weights="1")
    written.decide(APPROVE, weights="2")
    written.audits.write(written.uri, first)
    assert (written.decision("1"), written.decision("2")) == (("approve", False), ("approve", True))


def test_writing_again_changes_nothing(written: Written) -> None:
    event = written.decide(REVIEW)
    once = written.now()
    written.audits.write(written.uri, event)
    assert written.now() == once


def test_two_writers_of_one_model_go_one_after_the_other(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [0], [0]
    counting = threading.Lock()
    write = MlflowRegistry.write_version

    def counted(self: MlflowRegistry, *arguments: object) -> None:
        with counting:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        try:
            write(self, *arguments)  # type: ignore[arg-type]
        finally:
            with counting:
                inside[0] -= 1

    monkeypatch.setattr(MlflowRegistry, "write_version", counted)
    events = [written.audits.decide(written.model_id, one) for one in (APPROVE, REVIEW, BLOCK)]
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda event: written.audits.write(written.uri, event), events)) == {"1"}
    assert most == [1]
    assert written.decision() == ("block", False)
    assert len(list(written.client.versions(written.name))) == 1


def test_a_person_s_own_words_stay_and_ours_are_text(written: Written) -> None:
    version = written.register(description="Made by *us*.")
    written.decide(BLOCK, text=f"</td><script>alert(1)</script> [x](javascript:alert(1)) {END} ![i](http://evil/x.png)")
    described = written.now(version).description
    assert described.startswith(f"Made by *us*.\n\n{BEGIN}\n**Proctor: blocked**")
    assert described.count(END) == 1
    assert "<script>" not in described
    assert "](" not in described.replace("\\]\\(", "")
    written.client.describe(
        written.name, version, described.replace("Made by *us*.", "Made by **them**.") + "\n\nBelow."
    )
    written.decide(APPROVE)
    after = written.now(version).description
    assert after.startswith(f"Made by **them**.\n\n{BEGIN}\n**Proctor: approved**")
    assert after.endswith(f"{END}\n\nBelow.")
    assert "blocked" not in after


def test_odd_suite_ids_become_keys_of_bounded_size(written: Written) -> None:
    long, odd = "a" * 128, "../<b>\x1b[2J\u202e"
    written.decide(APPROVE, suite=long, subject="long")
    written.audits.write(written.uri, written.audits.decide(written.model_id, REVIEW, suite=odd, subject="odd"))
    keys = [key for key in written.now().tags if key.startswith("proctor.suite.")]
    assert len(keys) == 8
    assert all(key.isascii() and key.isprintable() and len(key) < 100 for key in keys)


def test_tags_of_a_suite_that_counts_no_more_are_taken_away(written: Written) -> None:
    version = written.register()
    for key in ("proctor.suite.gone.decision", "proctor.report_digest", "proctor.report", "proctor.audit.a-1"):
        written.client.set_tag(written.name, version, key, "old")
    written.client.set_tag(written.name, version, "team", "ours")
    written.decide(APPROVE)
    tags = written.now(version).tags
    assert not [key for key, value in tags.items() if value == "old"]
    assert tags["team"] == "ours"


def test_a_version_that_was_deleted_while_it_was_audited_is_said_to_be_gone_and_not_made_anew(
    written: Written,
) -> None:
    version = written.register()
    key = written.audits.ask(written.name, version, "facts")
    said = {"name": written.name, "version": version}
    httpx.request(
        "DELETE", f"{written.uri}/api/2.0/mlflow/model-versions/delete", json=said, trust_env=False
    ).raise_for_status()
    with pytest.raises(VersionGoneError, match=f"version {version} of {written.name} was deleted in MLflow"):
        written.decide(APPROVE, request=key)
    assert list(written.client.versions(written.name)) == []


def test_a_decision_that_is_not_on_record_is_not_written(written: Written) -> None:
    with pytest.raises(RegistryError, match="no decision of audit made-up-1 is on record here"):
        writing.write_standing(written.uri, written.audits.settings.records_url, written.audits.sources, "made-up-1")


def test_a_registry_that_is_away_leaves_what_stands_on_record(written: Written) -> None:
    event = written.audits.decide(written.model_id, APPROVE)
    with pytest.raises(RegistryUnavailableError):
        written.audits.write(f"http://127.0.0.1:{free_port()}", event)
    assert written.audits.records.registration(event.audit_id) is None
    assert written.audits.write(written.uri, event) == "1"
    assert written.decision() == ("approve", True)


def test_of_equal_weights_registered_twice_the_later_version_has_the_alias(written: Written, mlflow_uri: str) -> None:
    versions = [written.register(), written.register()]
    event = written.audits.decide(written.model_id, APPROVE)
    with closing(MlflowRegistry(mlflow_uri)) as registry:
        for version in (*versions, versions[0]):
            name = VersionName(RegistryKind.MLFLOW, written.name, version)
            registry.write_version(standing_record(written.audits.sources, event, name), version)
    assert [written.decision(version) for version in versions] == [("approve", False), ("approve", True)]
