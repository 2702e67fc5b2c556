"""Signing audits off: who may, what is refused, and what the registry's writer is told; by terminal and over HTTP."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from kombu.exceptions import OperationalError

from proctor.cli.main import main
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.messages import Message, WriteDecision
from proctor.domain.record.attestation import ATTESTATION
from proctor.domain.record.sign_off import ApprovalTerms, Verb
from proctor.domain.standing import StandingKind
from proctor.domain.submitter import DEFAULT, LOCAL, OWN, ForbiddenError, Role, Submitter
from proctor.router import expiry
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records import standings
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.runtime.signing import known_keys, open_signing_key
from proctor.studies.record.checks import check_store, trust_in
from proctor.studies.review import Reviews, reviews_of
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.record_samples import an_event

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK
ADA = Submitter("ada", role=Role.REVIEWER)
WHY = ("Read every item that differs.", "QA-118")


class Bench:
    """An installation with a registry, whose messages to the registry's writer are kept."""

    def __init__(self, home: Path, records_url: str) -> None:
        self.settings = Settings(home=home, records_url=records_url, registry_uri="http://registry")
        self.records = Records(records_url)
        self.sent: list[WriteDecision] = []
        self.reviews = reviews_of(self.settings, self.records, self.sent.append)

    def decide(self, outcome: DecisionOutcome, audit_id: str = "a-1", **terms: Any) -> str:
        key = open_signing_key(self.settings.home, None)
        event = an_event(audit_id, outcome=outcome.value)
        assert self.records.decide(audit_id, event, key=key, approval=ApprovalTerms.model_validate(terms))
        return audit_id

    def is_intact(self) -> bool:
        trust = trust_in(known_keys(self.settings.home, None))
        return check_store(self.records, None, self.settings.home, trust).intact


@pytest.fixture
def bench(tmp_path: Path, records_url: str) -> Iterator[Bench]:
    found = Bench(tmp_path, records_url)
    with closing(found.records):
        yield found


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Bench]:
    """The same on SQLite alone, for what no database has a part in."""
    found = Bench(tmp_path, f"sqlite:///{tmp_path / 'records.sqlite'}")
    with closing(found.records):
        yield found


def test_a_reviewer_signs_off_and_the_registry_s_writer_is_told_by_the_decision_on_record(bench: Bench) -> None:
    audit = bench.decide(REVIEW)
    signed = bench.reviews.sign(audit, Verb.APPROVE, APPROVE, ADA, *WHY)
    assert signed.told
    assert signed.standing == bench.reviews.standing(audit)
    (message,) = bench.sent
    assert message.event.plain() == an_event(audit, outcome="review") == bench.records.decision(audit)
    assert bench.records.standings.untold() == []
    # Its attestation lies beside the report, as the decision's would.
    laid = {path.name for path in (bench.settings.home / "reports" / audit).iterdir()}
    assert laid == {ATTESTATION, "attestation-2.json"}
    assert bench.is_intact()
    assert [(one.outcome, one.kind) for one in bench.reviews.history(audit)] == [
        (REVIEW, StandingKind.DECISION),
        (APPROVE, StandingKind.SIGN_OFF),
    ]


@pytest.mark.parametrize(
    "caller",
    [DEFAULT, Submitter("ci"), Submitter("eve", role=Role.VIEWER), Submitter("ops", sees_all=True)],
    ids=["shared token", "operator", "viewer", "operator who sees all"],
)
def test_who_is_no_reviewer_signs_nothing_off(local: Bench, caller: Submitter) -> None:
    audit = local.decide(REVIEW)
    with pytest.raises(ForbiddenError, match="this takes a reviewer"):
        local.reviews.sign(audit, Verb.APPROVE, APPROVE, caller, *WHY)
    assert (len(local.records.logged(audit)), local.sent) == (1, [])


@pytest.mark.parametrize("caller", [LOCAL, OWN], ids=["terminal", "the home's own token"])
def test_who_is_known_by_the_terminal_signs_by_the_name_of_the_login(
    local: Bench, caller: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    standing = local.reviews.sign(local.decide(REVIEW), Verb.APPROVE, APPROVE, caller, *WHY).standing
    assert standing.by is not None
    assert (standing.by.name, standing.by.via) == (pwd.getpwuid(os.getuid()).pw_name, "terminal")


@pytest.mark.parametrize(
    ("reason", "reference", "words"),
    [
        ("", "QA-1", "needs a reason: it is blank"),
        (" \t ", "QA-1", "needs a reason: it is blank"),
        ("fine", " ", "needs a reference: it is blank"),
        ("x" * 2_001, "QA-1", "the reason has 2,001 characters"),
        ("fine", "x" * 501, "the reference has 501 characters"),
        ("fine\x1b[2J", "QA-1", "do not print"),
        ("fine\nline", "QA-1", "do not print"),
        ("fi\u202ene", "QA-1", "do not print"),
        ("fine", "QA\0", "do not print"),
        ("fine\ud800", "QA-1", "do not print"),
    ],
)
def test_a_sign_off_needs_a_reason_and_a_reference_that_a_person_can_read(
    local: Bench, reason: str, reference: str, words: str
) -> None:
    audit = local.decide(REVIEW)
    with pytest.raises(BadInputError, match=words):
        local.reviews.sign(audit, Verb.APPROVE, APPROVE, ADA, reason, reference)
    assert len(local.records.logged(audit)) == 1


def test_a_person_waits_for_a_key_as_a_decision_does_not(local: Bench) -> None:
    def no_key() -> Any:
        raise OSError(28, "No space left on device")

    audit = local.decide(REVIEW)
    reviews = Reviews(local.records, no_key, local.settings, local.sent.append)
    with pytest.raises(BadInputError, match="No space left on device"):
        reviews.sign(audit, Verb.APPROVE, APPROVE, ADA, *WHY)
    assert len(local.records.logged(audit)) == 1


def test_what_the_broker_did_not_take_is_told_later(bench: Bench) -> None:
    def away(message: Message) -> None:
        raise OperationalError("the broker is away")

    audit = bench.decide(REVIEW)
    signed = reviews_of(bench.settings, bench.records, away).sign(audit, Verb.REJECT, BLOCK, ADA, *WHY)
    assert (signed.told, signed.standing.outcome) == (False, BLOCK)
    assert [one.audit_id for one in bench.records.standings.untold()] == [audit]
    assert expiry.expire_once(bench.settings, away) == []
    assert len(bench.records.standings.untold()) == 1
    expiry.expire_once(bench.settings, bench.sent.append)
    expiry.expire_once(bench.settings, bench.sent.append)
    assert [message.event.audit_id for message in bench.sent] == [audit]


def test_a_router_says_once_that_an_approval_has_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    audits = [bench.decide(APPROVE, f"a{n}-1", expires_after_days=n) for n in (10, 20)]
    later = datetime.now(UTC) + timedelta(days=15)
    original = standings.Standings.__init__
    monkeypatch.setattr(standings.Standings, "__init__", lambda self, engine: original(self, engine, lambda: later))
    assert expiry.expire_once(bench.settings, bench.sent.append) == audits[:1]
    assert expiry.expire_once(bench.settings, bench.sent.append) == []
    assert [message.event.audit_id for message in bench.sent] == audits[:1]
    entry = json.loads(bench.records.logged(audits[0])[1].text)
    assert (entry["kind"], entry["content"]["because"]) == ("expiry", "time")
    assert (bench.settings.home / "reports" / audits[0] / "attestation-3.json").exists()
    assert bench.is_intact()


# At the terminal.


class Terminal:
    """`proctor review` in a home with one audit of each outcome, and without a broker to tell."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys
        key = open_signing_key(home, None)
        with closing(Records(f"sqlite:///{home / 'records.sqlite'}")) as records:
            for subject, outcome in (("appr", "approve"), ("rev", "review"), ("blo", "block")):
                audit = records.create_audit(subject, "{}", {}).audit_id
                records.decide(audit, an_event(audit, outcome=outcome), key=key)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Give a command; what it prints."""
        self._capsys.readouterr()
        assert main([*arguments, "--home", str(self.home)]) == code
        said = self._capsys.readouterr()
        self.errors = said.err
        return said.out


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "home", capsys)


SAID = ("--reason", WHY[0], "--reference", WHY[1])


def test_a_person_lists_shows_and_signs_off_at_the_terminal(terminal: Terminal) -> None:
    queue = json.loads(terminal.run("review", "list", "--format", "json"))
    assert (queue["n_waiting"], {one["audit_id"] for one in queue["waiting"]}) == (2, {"rev-1", "blo-1"})
    assert "rev-1" in terminal.run("review", "list")
    assert "as the gate decided" in terminal.run("review", "show", "blo", code=4)
    terminal.run("review", "approve", "blo", *SAID, code=2)
    assert "use override" in terminal.errors
    overridden = terminal.run(
        "review", "override", "blo", "--outcome", "approve", "--expires-after-days", "7", *SAID, "--format", "json"
    )
    assert json.loads(overridden)["outcome"] == "approve"
    terminal.run("review", "approve", "rev", *SAID)
    terminal.run("review", "approve", "rev", *SAID, code=2)
    assert "its outcome is approve already" in terminal.errors
    assert WHY[1] in terminal.errors
    terminal.run("review", "reject", "appr", *SAID)
    assert "Nothing waits" in terminal.run("review", "list")
    shown = terminal.run("review", "show", "blo")
    assert "the gate had decided block" in shown
    whole = json.loads(terminal.run("review", "show", "blo", "--format", "json"))
    assert [one["outcome"] for one in whole["history"]] == ["block", "approve"]
    assert whole["stands"]["expires_at"] is not None
    assert "stands now: block since" in terminal.run("record", "show", "appr")
    assert "IS NOT" not in terminal.run("record", "verify", "--no-reports")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("approve", "none", *SAID), "there is no audit 'none'"),
        (("show", "none"), "there is no audit 'none'"),
        (("approve", "rev", "--reason", " ", "--reference", "x"), "it is blank"),
        (("approve", "rev", "--reason", "x"), "Missing option '--reference'"),
        (("override", "rev", *SAID), "Missing option '--outcome'"),
    ],
)
def test_what_is_no_sign_off_is_refused_in_a_sentence(
    terminal: Terminal, arguments: tuple[str, ...], words: str
) -> None:
    terminal.run("review", *arguments, code=2)
    assert words in terminal.errors


# Over HTTP.

_ADA, _CI, _BOB = new_token(), new_token(), new_token()
TOKENS = {
    "ada": {"token": _ADA, "role": "reviewer", "sees_all": True},
    "bob": {"token": _BOB, "role": "reviewer"},
    "ci": _CI,
}


@pytest.fixture
def audits(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


def is_problem(answer: httpx.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"], answer.text


def test_a_reviewer_signs_off_over_http(audits: AuditBench) -> None:
    blocked, waiting, open_one = (audits.submitted(name) for name in ("one", "two", "three"))
    audits.decide(blocked, BLOCK)
    audits.decide(waiting, REVIEW)
    wanted = {"verb": "approve", "reason": WHY[0], "reference": WHY[1]}
    with (
        serving_both(audits.desk, tokens=TOKENS) as (_, url),
        client(url, _ADA) as ada,
        client(url, _CI) as ci,
        client(url, _BOB) as bob,
        client(url) as nobody,
    ):
        page = ada.get("/v1/reviews", params={"limit": 1}).json()
        rest = ada.get("/v1/reviews", params={"before": page["next"]}).json()
        assert page["n_waiting"] == rest["n_waiting"] == 2
        assert {one["audit_id"] for one in (*page["waiting"], *rest["waiting"])} == {blocked, waiting}
        assert rest["next"] is None
        assert bob.get("/v1/reviews").json() == {"n_waiting": 0, "waiting": [], "next": None}
        is_problem(ada.get("/v1/reviews", params={"before": "x\0"}), 400, "no place in the list")

        def sign(http: httpx.Client, audit: str, **more: Any) -> httpx.Response:
            return http.post(f"/v1/audits/{audit}/sign-offs", json={**wanted, **more})

        is_problem(sign(nobody, waiting), 401, "token")
        is_problem(sign(ci, waiting), 403, "this takes a reviewer")
        is_problem(sign(bob, waiting), 404, "there is no audit")
        is_problem(sign(ada, "none"), 404, "there is no audit")
        is_problem(sign(ada, open_one), 400, "has no decision yet")
        is_problem(sign(ada, blocked), 400, "use override")
        is_problem(sign(ada, waiting, verb="override"), 400, "which outcome")
        is_problem(sign(ada, waiting, verb="bless"), 400, "verb")
        is_problem(sign(ada, waiting, reason=" "), 400, "it is blank")
        is_problem(sign(ada, waiting, reason="x" * 70_000), 413, "larger than")
        is_problem(sign(ada, waiting, by="eve"), 400, "by")
        is_problem(sign(ada, waiting, seen=0), 409, "was changed meanwhile")
        assert len(audits.records.logged(waiting)) == 1

        (seen,) = (one for one in (*page["waiting"], *rest["waiting"]) if one["audit_id"] == waiting)
        done = sign(ada, waiting, seen=seen["sequence"])
        assert done.status_code == 201, done.text
        assert done.json()["stands"]["by"] == {"name": "ada", "via": "token"}
        shown = ada.get(f"/v1/audits/{waiting}").json()["decision"]
        assert (shown["outcome"], shown["stands"]["outcome"], shown["stands"]["reference"]) == (
            "review", "approve", WHY[1],
        )  # fmt: skip
        overridden = sign(ada, blocked, verb="override", outcome="approve", expires_after_days=3)
        assert overridden.json()["stands"]["expires_at"] is not None
        assert ada.get("/v1/reviews").json()["waiting"] == []
        described = ada.get("/openapi.json").json()["paths"]
        assert described["/v1/audits/{audit_id}/sign-offs"]["post"]["security"]
