"""Who calls a gateway: tokens that nobody guesses, callers that are told apart, and audits that are their own."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from proctor.cli.main import main
from proctor.cli.serving import tokens_of
from proctor.domain.errors import BadInputError
from proctor.domain.submitter import DEFAULT, LOCAL, OWN, TRIGGERS, Role, Submitter
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.runtime.grpc.tokens import (
    MAX_TOKEN_CHARACTERS,
    MAX_TOKENS,
    MIN_TOKEN_BITS,
    Tokens,
    metadata_of,
    new_token,
    server_tokens,
    token_bits,
    token_digest,
)
from tests.integration.audit_support import AuditBench, audit_bench, refused, serving, stub

Code = grpc.StatusCode
ALICE, BOB, OPS = ("0123456789abcdef" + owner * 8 for owner in ("a1", "b2", "c3"))
TOKENS: dict[str, Any] = {"alice": ALICE, "bob": token_digest(BOB), "ops": {"token": OPS, "operator": True}}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


def tokens(single: str | None = None, **several: Any) -> Tokens:
    found = server_tokens(single, json.dumps(several), variable="PROCTOR_GATEWAY_TOKEN", source="the list")
    assert found is not None
    return found


class Caller:
    """One caller of a server."""

    def __init__(self, service: Any, bench: AuditBench, token: str) -> None:
        self._service = service
        self._bench = bench
        self._metadata = metadata_of(token)

    def submit(self, name: str = "first") -> str:
        files = [pb.SuiteFile(name="items.jsonl", content=(self._bench.home / "items.jsonl").read_bytes())]
        request = pb.SubmitRequest(suite=self._bench.suite_text(name), files=files)
        audit: str = self._service.Submit(request, metadata=self._metadata, timeout=20).audit.audit_id
        return audit

    def list(self, limit: int = 50) -> set[str]:
        reply = self._service.List(pb.ListRequest(limit=limit), metadata=self._metadata, timeout=20)
        return {audit.audit_id for audit in reply.audits}

    def call(self, method: str, audit: str) -> Any:
        kind = getattr(pb, f"{method}Request")
        return getattr(self._service, method)(kind(audit=audit), metadata=self._metadata, timeout=20)


def test_callers_see_and_steer_their_own_audits_and_operators_those_of_everyone(bench: AuditBench) -> None:
    with serving(bench.desk, tokens=TOKENS) as address, stub(address) as service:
        alice, bob, ops = (Caller(service, bench, token) for token in (ALICE, BOB, OPS))
        hers, local = alice.submit(), bench.submitted("of-the-terminal")
        assert (alice.list(), bob.list(), ops.list()) == ({hers}, set(), {hers, local})
        for audit in (hers, hers[:8], local):
            for method in ("Get", "Pause", "Resume", "Cancel"):
                with refused(Code.NOT_FOUND, "none is on record"):
                    bob.call(method, audit)
            with refused(Code.NOT_FOUND, "none is on record"):
                next(bob.call("Watch", audit))
        assert not alice.call("Get", hers).paused
        assert ops.call("Pause", hers).paused
        assert ops.call("Get", local).submitter == "local"


def test_the_submitter_s_name_stands_on_the_audit_and_in_what_is_shown(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(bench.desk, tokens=TOKENS) as address, stub(address) as service:
        audit = Caller(service, bench, BOB).submit()
        assert bench.records.audit(audit).inputs["submitter"] == "bob"
        monkeypatch.setenv("PROCTOR_GATEWAY_TOKEN", BOB)
        assert main(["audit", "show", audit, "--server", f"grpc://{address}"]) == 0
        assert " by bob\n" in capsys.readouterr().out
        assert main(["audit", "show", audit, "--server", f"grpc://{address}", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["submitter"] == "bob"
    # The terminal's own is not written, as in rows of before there were names.
    assert "submitter" not in bench.records.audit(bench.submitted("mine")).inputs


def test_the_same_suite_of_another_caller_is_another_audit(bench: AuditBench) -> None:
    with serving(bench.desk, tokens=TOKENS) as address, stub(address) as service:
        alice, bob = Caller(service, bench, ALICE), Caller(service, bench, BOB)
        hers, his = alice.submit(), bob.submit()
        assert hers != his
        # So that nobody raises, pauses or squats on what another pays for; their own goes on as ever.
        alice.call("Pause", hers)
        assert (bob.submit(), alice.submit()) == (his, hers)


def test_a_list_of_one_s_own_is_not_cut_short_by_the_audits_of_others(bench: AuditBench) -> None:
    with serving(bench.desk, tokens=TOKENS) as address, stub(address) as service:
        alice, bob = Caller(service, bench, ALICE), Caller(service, bench, BOB)
        hers = {alice.submit(f"hers-{n}") for n in range(2)}
        for n in range(6):
            bob.submit(f"his-{n}")
        assert alice.list(limit=2) == hers


def test_the_single_token_s_holder_sees_everything_as_before_there_were_names(bench: AuditBench) -> None:
    token = new_token()
    with serving(bench.desk, token=token, tokens=TOKENS) as address, stub(address) as service:
        hers, default = Caller(service, bench, ALICE).submit(), Caller(service, bench, token)
        assert default.list() == {hers}
        assert default.call("Get", default.submit("another")).submitter == "default"


@pytest.mark.parametrize(
    "token",
    [
        "open sesame", "hunter2", "12345678901234567890123456789012345", "a" * 64, "abcdefg" * 20,
        "8cc7bab856b23b339c96f2fa5e86c7", "wSJOzVaVvkpqdoNbd8j9T", "correct horse battery",
    ],
)  # fmt: skip
def test_a_token_that_could_be_guessed_starts_no_server_and_is_told_how_a_good_one_is_made(token: str) -> None:
    assert token_bits(token) < MIN_TOKEN_BITS
    for said in ({"single": token}, {"alice": token}, {"alice": {"token": token}}):
        with pytest.raises(BadInputError, match=r"could be guessed.*128 bits.*proctor gateway token") as error:
            tokens(**said)
        assert token not in str(error.value)


def test_tokens_that_are_drawn_at_random_are_taken() -> None:
    for _ in range(200):
        for token in (secrets.token_hex(16), secrets.token_urlsafe(17), secrets.token_hex(16).upper(), new_token()):
            assert tokens(token).caller(metadata_of(token)) == DEFAULT


def test_a_server_does_not_start_with_a_weak_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable, command in [
        ("PROCTOR_GATEWAY_TOKEN", ("gateway", "--port", "0")),
        ("PROCTOR_PERTURBATION_TOKEN", ("perturbation", "serve", "--listen", "127.0.0.1:0")),
    ]:
        monkeypatch.setenv(variable, "open-sesame")
        assert main([*command, "--home", str(tmp_path / "home")]) == 2
        assert f"{variable} holds a token that could be guessed" in capsys.readouterr().err
        monkeypatch.delenv(variable)
        monkeypatch.setenv(f"{variable}S", '{"ci": "open-sesame"}')
        assert main([*command, "--home", str(tmp_path / "home")]) == 2
        assert f'{variable}S: "ci" holds a token that could be guessed' in capsys.readouterr().err
        monkeypatch.delenv(f"{variable}S")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"local": ALICE}, "cannot be a caller's name"),
        ({"default": ALICE}, "cannot be a caller's name"),
        ({"Alice": ALICE}, "cannot be a caller's name"),
        ({"a" * 65: ALICE}, "cannot be a caller's name"),
        ({"alice": 5}, "has no token"),
        ({"alice": {"token": ALICE, "admin": True}}, "has no token"),
        ({"alice": {"token": ALICE, "operator": "yes"}}, "has no token"),
        ({"alice": {"token": ALICE, "role": "admin"}}, 'has the role "admin"; use one of viewer, operator, reviewer'),
        ({"alice": {"token": ALICE, "role": ["reviewer"]}}, "use one of viewer"),
        ({"alice": ALICE, "bob": token_digest(ALICE)}, "'alice' and 'bob' have one token"),
        ({"alice": "x" * (MAX_TOKEN_CHARACTERS + 1)}, "cannot travel in a header"),
        ({f"c{n}": token_digest(str(n)) for n in range(MAX_TOKENS + 1)}, "names 1,001 callers"),
    ],
)
def test_a_list_of_tokens_that_cannot_be_used_is_refused_with_the_name(said: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message) as error:
        server_tokens(None, json.dumps(said), variable="V", source="the list")
    assert ALICE not in str(error.value)


def test_what_is_shown_is_one_token_of_a_length_that_tokens_have() -> None:
    known = tokens(**TOKENS)
    assert known.caller(metadata_of(ALICE)) == Submitter("alice")
    assert known.caller(metadata_of(OPS)) == Submitter("ops", sees_all=True)
    for metadata in [
        [],
        None,
        metadata_of("wrong"),
        metadata_of(token_digest(BOB)),
        metadata_of(ALICE) * 2,
        [("authorization", ALICE)],
        [("authorization", f"bearer {ALICE}")],
        [("authorization", b"Bearer " + ALICE.encode())],
        metadata_of("x" * 100_000),
        metadata_of(ALICE + "\ud800"),
    ]:
        assert known.caller(metadata) is None


def test_each_call_is_held_against_every_token_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    in_constant_time = hmac.compare_digest

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return in_constant_time(left, right)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    known = tokens(**TOKENS)
    for token in (ALICE, BOB, OPS, "wrong"):
        compared.clear()
        known.caller(metadata_of(token))
        # Digests of one length, all of them whichever is right.
        assert [right.decode() for _, right in compared] == [token_digest(one) for one in (ALICE, BOB, OPS)]
        assert {len(left) for left, _ in compared} == {len(token_digest(""))}


def test_a_command_prints_a_token_and_the_line_that_a_server_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "token", "ci"]) == 0
    printed = capsys.readouterr()
    token = printed.out.strip()
    line = printed.err[printed.err.index("{") : printed.err.index("}") + 1]
    assert token not in printed.err
    assert tokens(**json.loads(line)).caller(metadata_of(token)) == Submitter("ci")
    assert main(["gateway", "token", "anna", "--role", "reviewer", "--sees-all"]) == 0
    printed = capsys.readouterr()
    line = printed.err[printed.err.index("{") : printed.err.rindex("}") + 1]
    anna = tokens(**json.loads(line)).caller(metadata_of(printed.out.strip()))
    assert anna == Submitter("anna", sees_all=True, role=Role.REVIEWER)
    assert main(["gateway", "token", "--role", "viewer"]) == 2
    assert main(["gateway", "token", "Not A Name"]) == 2
    assert main(["gateway", "token"]) == 0
    assert token_bits(capsys.readouterr().out.strip()) >= MIN_TOKEN_BITS


def test_each_role_includes_those_before_it_and_a_shared_secret_is_no_signature() -> None:
    may = {role: [one for one in Role if Submitter("x", role=role).may(one)] for role in Role}
    assert may == {
        Role.VIEWER: [Role.VIEWER],
        Role.OPERATOR: [Role.VIEWER, Role.OPERATOR],
        Role.REVIEWER: [Role.VIEWER, Role.OPERATOR, Role.REVIEWER],
    }
    assert [one.may(Role.REVIEWER) for one in (LOCAL, OWN, DEFAULT, TRIGGERS)] == [True, True, False, False]


def test_a_list_with_tokens_in_clear_is_named_at_the_start_and_none_of_them_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = tokens_of(None, json.dumps(TOKENS), variable="PROCTOR_GATEWAY_TOKEN")
    said = capsys.readouterr().err
    assert found is not None
    assert "PROCTOR_GATEWAY_TOKENS holds tokens in clear (alice, ops)" in said
    assert "sha256sum" in said
    assert all(token not in said for token in (ALICE, BOB, OPS))
    tokens_of(None, json.dumps({"bob": TOKENS["bob"]}), variable="PROCTOR_GATEWAY_TOKEN")
    assert capsys.readouterr().err == ""
