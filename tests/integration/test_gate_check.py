"""`proctor gate check` against a real MLflow server and a real record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from proctor.cli.main import main
from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.mlflow_registry import APPROVED_ALIAS, registered_name
from proctor.registry.version_tags import DECISION_TAG
from proctor.runtime.records.standings import NewSignOff
from tests.integration.registry_support import mlflow_server
from tests.standing_audits import DecidedAudits, decided_audits

#: The first test of the file also starts the MLflow server, which migrates an empty database.
pytestmark = pytest.mark.timeout(150)


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as uri:
        yield uri


class Installation:
    """A home with a record and artifacts, and a registry."""

    def __init__(self, audits: DecidedAudits, uri: str) -> None:
        self.audits, self.uri = audits, uri
        self.settings = audits.settings
        self.home = audits.settings.home
        self.model_id = f"org/model-{uuid4().hex[:12]}"
        self.name = registered_name(self.model_id)

    def decided(self, outcome: DecisionOutcome, *, suite: str = "facts") -> str:
        """Put a decision on record and on the registry; returns the version."""
        self.event = self.audits.decide(self.model_id, outcome, suite=suite)
        self.document = self.event.report_digest
        return self.audits.write(self.uri, self.event)

    def sign(self, verb: Verb, outcome: DecisionOutcome, *, days: int | None = None) -> None:
        wanted = NewSignOff(verb, outcome, SignedBy(name="Ada", via="terminal"), "Known.", "T-1", days)
        self.audits.records.standings.sign(self.event.audit_id, wanted, key=self.audits.key)

    def check(self, reference: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        arguments = ["gate", "check", reference, "--registry", self.uri, "--home", str(self.home), "--format", "json"]
        code = main(arguments)
        said = capsys.readouterr().out
        return code, json.loads(said) if said else {}


@pytest.fixture
def installed(tmp_path: Path, mlflow_uri: str) -> Iterator[Installation]:
    with decided_audits(tmp_path) as audits:
        yield Installation(audits, mlflow_uri)


def test_an_approved_version_may_be_promoted_by_alias_by_number_and_by_model_id(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    version = installed.decided(DecisionOutcome.APPROVE)
    for reference in (
        f"{installed.name}@{APPROVED_ALIAS}",
        f"{installed.model_id}@{APPROVED_ALIAS}",
        f"{installed.name}/{version}",
        f"models:/{installed.name}/{version}",
    ):
        code, found = installed.check(reference, capsys)
        assert (code, found["outcome"], found["version"]) == (0, "approve", version)
        assert found["caveat"]


@pytest.mark.parametrize(("outcome", "exit_code"), [(DecisionOutcome.REVIEW, 3), (DecisionOutcome.BLOCK, 4)])
def test_a_version_under_review_and_a_blocked_one_may_not(
    installed: Installation, capsys: pytest.CaptureFixture[str], outcome: DecisionOutcome, exit_code: int
) -> None:
    version = installed.decided(outcome)
    assert installed.check(f"{installed.name}/{version}", capsys)[0] == exit_code


def test_a_tag_that_was_edited_by_hand_does_not_pass(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    version = installed.decided(DecisionOutcome.BLOCK)
    with MlflowClient(installed.uri) as client:
        client.set_tag(installed.name, version, DECISION_TAG, "approve")
        client.set_alias(installed.name, APPROVED_ALIAS, version)
    code, found = installed.check(f"{installed.name}@{APPROVED_ALIAS}", capsys)
    assert (code, found["outcome"]) == (1, None)
    assert [reason["code"] for reason in found["reasons"]] == ["outcome_differs", "because"]


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("proctor.report_sha256", "9" * 64, "report_differs"),
        ("proctor.fingerprint", "sha256:" + "9" * 64, "fingerprint_differs"),
        ("proctor.model_digest", "sha256:" + "9" * 64, "model_differs"),
        ("proctor.audit_id", "made-up-1", "not_on_record"),
    ],
)
def test_no_other_tag_can_be_edited_either(
    installed: Installation, capsys: pytest.CaptureFixture[str], key: str, value: str, code: str
) -> None:
    version = installed.decided(DecisionOutcome.APPROVE)
    with MlflowClient(installed.uri) as client:
        client.set_tag(installed.name, version, key, value)
    exit_code, found = installed.check(f"{installed.name}/{version}", capsys)
    assert (exit_code, [reason["code"] for reason in found["reasons"]]) == (1, [code])


def test_a_version_that_an_earlier_proctor_wrote_passes(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    version = installed.decided(DecisionOutcome.APPROVE)
    with MlflowClient(installed.uri) as client:
        client.delete_tag(installed.name, version, "proctor.report_sha256")
        client.set_tag(installed.name, version, "proctor.report_digest", installed.document)
    assert installed.check(f"{installed.name}/{version}", capsys)[0] == 0


def test_a_sign_off_counts_and_an_approval_that_ended_does_not(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    version = installed.decided(DecisionOutcome.BLOCK)
    installed.sign(Verb.OVERRIDE, DecisionOutcome.APPROVE, days=7)
    assert installed.check(f"{installed.name}/{version}", capsys)[0] == 1
    installed.audits.write(installed.uri, installed.event)
    code, found = installed.check(f"{installed.name}/{version}", capsys)
    assert (code, found["outcome"], found["reasons"][0]["code"]) == (0, "approve", "signed_off")
    installed.sign(Verb.REJECT, DecisionOutcome.BLOCK)
    code, found = installed.check(f"{installed.name}@{APPROVED_ALIAS}", capsys)
    assert (code, [reason["code"] for reason in found["reasons"]][:2]) == (1, ["outcome_differs", "signed_off"])


def test_a_suite_that_is_asked_for_and_not_run_keeps_a_version_from_being_promoted(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    version = installed.decided(DecisionOutcome.APPROVE)
    installed.audits.ask(installed.name, version, "numbers")
    code, found = installed.check(f"{installed.name}/{version}", capsys)
    assert (code, [reason["code"] for reason in found["reasons"]]) == (1, ["outcome_differs", "not_decided"])
    installed.audits.write(installed.uri, installed.event)
    assert installed.check(f"{installed.name}/{version}", capsys)[0] == 3


def test_the_tags_of_an_approved_version_do_not_approve_another(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    approved = installed.decided(DecisionOutcome.APPROVE)
    with MlflowClient(installed.uri) as client:
        tags = client.version(installed.name, approved).tags
        copy = client.create_version(installed.name, source="s3://bucket/other", tags=tags, description="")
    code, found = installed.check(f"{installed.name}/{copy.version}", capsys)
    assert (code, [reason["code"] for reason in found["reasons"]]) == (1, ["version_differs"])


def test_a_report_that_was_swapped_does_not_pass(installed: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    version = installed.decided(DecisionOutcome.APPROVE)
    store = Path(installed.settings.artifacts)
    other = installed.audits.artifacts.put(b'{"decision": "made up"}')
    stored = {path.name: path for path in store.rglob("*") if path.is_file()}
    this, that = (next(stored[n] for n in stored if d.split(":")[1][4:40] in n) for d in (installed.document, other))
    this.chmod(0o600)
    this.write_bytes(that.read_bytes())
    code, found = installed.check(f"{installed.name}/{version}", capsys)
    assert (code, [reason["code"] for reason in found["reasons"]]) == (1, ["report_missing"])


def test_a_version_that_nobody_audited_waits_for_an_audit(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    with MlflowClient(installed.uri) as client:
        client.create_model(installed.name, tags={}, description="")
        version = client.create_version(installed.name, source="s3://bucket/new", tags={}, description="").version
    code, found = installed.check(f"{installed.name}/{version}", capsys)
    assert (code, found["reasons"][0]["code"]) == (3, "not_decided")


@pytest.mark.parametrize("reference", ["model", "model@", "@alias", "model/x", "model@a@b", "\x1b[2Jm"])
def test_a_reference_that_names_no_version_is_bad_input(
    installed: Installation, capsys: pytest.CaptureFixture[str], reference: str
) -> None:
    assert installed.check(reference, capsys)[0] == 2


def test_an_alias_that_points_nowhere_is_one_clear_error(
    installed: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "check", f"{installed.name}@champion", "--registry", installed.uri]) == 1
    said = capsys.readouterr().err
    assert "RESOURCE_DOES_NOT_EXIST" in said
    assert "Traceback" not in said
    assert httpx.URL(installed.uri).password not in said
