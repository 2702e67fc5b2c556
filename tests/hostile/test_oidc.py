"""Tokens of an issuer of OpenID Connect: which let somebody in, as whom, and every other one."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from proctor.domain.errors import BadInputError
from proctor.domain.oidc import MAX_NAME_CHARACTERS, OidcSettings, oidc_settings
from proctor.domain.submitter import ForbiddenError, Role, Submitter, UnknownCallerError
from proctor.gateway.oidc.bearer import MAX_CHARACTERS, Bearers
from proctor.gateway.oidc.documents import MAX_DOCUMENT_BYTES, IssuerAwayError, fetched_keys
from proctor.gateway.oidc.keys import COOLDOWN_S, FRESH_S, STALE_S, IssuerKeys
from proctor.gateway.oidc.opening import open_bearers
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.runtime.grpc.tokens import metadata_of, new_token
from tests.integration.audit_support import AuditBench, audit_bench, refused, stub
from tests.integration.http_gateway import client, serving_both
from tests.integration.test_sessions import form_token
from tests.oidc_issuer import AUDIENCE, DISCOVERY, Issuer, Key, issuing

ROLES = {"ml": "operator", "governance": {"role": "reviewer", "sees_all": True}}
HOUR_S = 3_600


@pytest.fixture(scope="module")
def shared() -> Iterator[Issuer]:
    """One issuer whose keys stay as they are."""
    with issuing() as found:
        yield found


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


def settings(issuer: Issuer, **said: Any) -> OidcSettings:
    text = json.dumps({"issuer": issuer.url, "audience": AUDIENCE, "roles": ROLES, **said})
    found = oidc_settings(text, source="the test")
    assert found is not None
    return found


def caller(issuer: Issuer, token: str, **said: Any) -> Submitter:
    return asyncio.run(open_bearers(settings(issuer, **said)).verified(token)).caller


def encoded(part: Any) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_a_token_of_the_issuer_s_lets_in_whom_it_names_with_the_highest_role_of_their_groups(shared: Issuer) -> None:
    anna = f"oidc:{shared.url}"
    assert caller(shared, shared.token()) == Submitter("oidc:anna@example.org", False, Role.OPERATOR, anna)
    both = shared.token(shared.ec, groups=["ml", "governance", "others"])
    assert caller(shared, both) == Submitter("oidc:anna@example.org", True, Role.REVIEWER, anna)
    path = shared.token(realm_access={"roles": ["ml"]}, groups=None, preferred_username="a.b", azp=AUDIENCE)
    assert caller(shared, path, roles_claim="realm_access.roles", name_claim="preferred_username").name == "oidc:a.b"
    dotted = shared.token(None, None, **{"https://x.example/roles": "ml", "groups": None})
    assert caller(shared, dotted, roles_claim="https://x.example/roles").role is Role.OPERATOR
    assert caller(shared, shared.token(groups=None), roles={"*": "viewer"}).role is Role.VIEWER
    ed = Key("ed-1", "EdDSA")
    with issuing() as other:
        other.keys.append(ed)
        assert caller(other, other.token(ed), algorithms=["EdDSA"]).name == "oidc:anna@example.org"
        # Of keys without a name in the token, the one for its algorithm.
        assert caller(other, jwt.encode(other.claims(), other.rsa.private, "RS256")).name == "oidc:anna@example.org"


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"exp": int(time.time()) - HOUR_S}, "has expired"),
        ({"nbf": int(time.time()) + HOUR_S}, "is not good yet"),
        ({"iat": int(time.time()) + HOUR_S}, "is not good yet"),
        ({"exp": None}, "lacks one of"),
        ({"iat": None}, "lacks one of"),
        ({"aud": None}, "lacks one of|another audience"),
        ({"aud": "another"}, "for another audience"),
        ({"aud": ["another", "third"]}, "for another audience"),
        ({"aud": {"proctor": True}}, "another audience|not the issuer's"),
        ({"iss": "https://evil.example"}, "of another issuer"),
        ({"iss": None}, "of another issuer"),
        ({"azp": "another-client"}, "given to another client"),
        ({"azp": ["proctor"]}, "given to another client"),
        ({"exp": "tomorrow"}, "not the issuer's"),
        ({"exp": float("inf")}, "has expired|not the issuer's"),
        ({"exp": float("nan")}, "has expired|not the issuer's"),
        ({"exp": 10**400}, "not the issuer's"),
        ({"exp": []}, "not the issuer's"),
    ],
)
def test_a_token_with_a_claim_that_does_not_hold_is_refused_with_the_reason(
    shared: Issuer, claims: dict[str, Any], words: str
) -> None:
    # As anybody may write them: the library that signs would refuse some.
    payload = json.dumps(shared.claims(**claims)).encode()
    token = jwt.PyJWS().encode(payload, shared.rsa.private, "RS256", headers={"kid": "rsa-1", "typ": "JWT"})
    with pytest.raises(UnknownCallerError, match=words):
        caller(shared, token)


def test_clocks_may_differ_by_the_leeway_and_no_more(shared: Issuer) -> None:
    now = [0.0]
    keys = IssuerKeys(partial(fetched_keys, shared.url))
    bearers = Bearers(settings(shared, leeway_s=30), keys, clock=lambda: now[0])
    token = shared.token(iat=1_000, nbf=1_000, exp=2_000)

    async def at(moment: float) -> bool:
        now[0] = moment
        try:
            return (await bearers.verified(token)).ends_at == 2_030
        except UnknownCallerError:
            return False

    async def all_of() -> list[bool]:
        return [await at(moment) for moment in (969, 971, 2_029, 2_031)]

    assert asyncio.run(all_of()) == [False, True, True, False]


def test_algorithms_that_are_not_allowed_and_keys_taken_for_secrets_let_nobody_in(shared: Issuer) -> None:
    claims = shared.claims()
    public = shared.rsa.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    body = encoded(claims)
    forged = {"none": jwt.encode(claims, "", "none", headers={"kid": "rsa-1"})}
    for name, secret in {"pem": public, "jwk": json.dumps(shared.rsa.public()).encode(), "empty": b""}.items():
        head = encoded({"alg": "HS256", "typ": "JWT", "kid": "rsa-1"})
        signature = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
        forged[name] = f"{head}.{body}.{encoded(signature)}"
    forged["None"] = f"{encoded({'alg': 'None', 'kid': 'rsa-1'})}.{body}."
    forged["a list"] = f"{encoded({'alg': ['RS256'], 'kid': 'rsa-1'})}.{body}.AAAA"
    # Allowed by the library and the issuer's key, and not by the operator.
    forged["RS512"] = jwt.encode(claims, shared.rsa.private, "RS512", headers={"kid": "rsa-1"})
    for name, token in forged.items():
        with pytest.raises(UnknownCallerError, match="algorithm that is not allowed"):
            caller(shared, token)
        assert name
    # An algorithm that is allowed, by the name of a key of another kind.
    crossed = jwt.encode(claims, shared.ec.private, "ES256", headers={"kid": "rsa-1"})
    with pytest.raises(UnknownCallerError, match="key that the issuer does not have"):
        caller(shared, crossed)


def test_what_was_changed_or_signed_by_another_lets_nobody_in(shared: Issuer) -> None:
    head, _, signature = shared.token().split(".")
    changed = encoded(shared.claims(groups=["governance"]))
    other = Key("rsa-1", "RS256")
    for token in (f"{head}.{changed}.{signature}", f"{head}.{changed}.", shared.token(other)):
        with pytest.raises(UnknownCallerError, match="is not the issuer's"):
            caller(shared, token)


def test_what_a_token_says_of_keys_is_not_followed(issuer: Issuer) -> None:
    mine = Key("mine", "RS256")
    issuer.said["/mine"] = json.dumps({"keys": [mine.public()]}).encode()
    for headers in (
        {"jku": f"{issuer.url}/mine"},
        {"x5u": f"{issuer.url}/mine"},
        {"jwk": mine.public()},
        {"x5c": ["AAAA"]},
        {"jku": f"{issuer.url}/mine", "kid": "rsa-1"},
        {"kid": "../../../../etc/passwd"},
        {"kid": f"{issuer.url}/mine"},
        {"kid": "' OR 1=1 --"},
        {"kid": "rsa-1\0"},
    ):
        with pytest.raises(UnknownCallerError, match=r"issuer does not have|is not the issuer's"):
            caller(issuer, issuer.token(mine, headers))
    assert set(issuer.asked) == {DISCOVERY, "/keys"}
    # Beside what is ignored, a good token stays good.
    assert caller(issuer, issuer.token(headers={"jku": "https://evil.example"})).role is Role.OPERATOR


@pytest.mark.parametrize(
    "headers",
    [{"typ": "logout+jwt"}, {"typ": 5}, {"crit": ["exp"]}, {"crit": [], "b64": False}, {"kid": "x" * 300}],
)
def test_a_token_of_another_kind_lets_nobody_in(shared: Issuer, headers: dict[str, Any]) -> None:
    head = encoded({"alg": "RS256", "kid": "rsa-1", **headers})
    signed = f"{head}.{encoded(shared.claims())}"
    signature = jwt.get_algorithm_by_name("RS256").sign(signed.encode(), shared.rsa.private)
    with pytest.raises(UnknownCallerError, match=r"of another kind|names no key|cannot be read"):
        caller(shared, f"{signed}.{encoded(signature)}")


def test_text_that_is_no_token_asks_the_issuer_for_nothing(issuer: Issuer) -> None:
    deep = "[" * 3_000 + "]" * 3_000
    head = encoded({"alg": "RS256", "kid": "x"})
    for text in (
        "",
        "..",
        "a.b.c",
        "a.b.c.d.e",
        "ü.b.c",
        f"{encoded(deep.encode())}.{encoded({})}.AAAA",
        f"{head}.{encoded(deep.encode())}.AAAA",
        f"{head}.{encoded(b'[]')}.AAAA",
        f"{head}.{encoded({'iss': ['x']})}.AAAA",
        f"{encoded(b'5')}.{encoded({})}.AAAA",
        f"{head}.{encoded({'iss': issuer.url, 'pad': 'x' * MAX_CHARACTERS})}.AAAA",
    ):
        with pytest.raises(UnknownCallerError):
            caller(issuer, text)
    assert issuer.asked == []


def test_who_has_no_role_or_no_name_that_can_be_shown_is_known_and_may_do_nothing(shared: Issuer) -> None:
    for claims in ({"groups": ["others"]}, {"groups": None}, {"groups": 5}, {"groups": ["*"]}, {"groups": [["ml"]]}):
        with pytest.raises(ForbiddenError, match="has no role here"):
            caller(shared, shared.token(**claims))
    for name in ("", " anna", "a\nb", "a\x1b[2J", "x" * (MAX_NAME_CHARACTERS + 1), "\u202eanna"):
        with pytest.raises(ForbiddenError, match="is no name"):
            caller(shared, shared.token(nick=name), name_claim="nick")
    with pytest.raises(ForbiddenError, match="is no name"):
        caller(shared, shared.token(), name_claim="absent")


def test_a_new_key_is_asked_for_once_and_one_that_was_taken_back_is_good_for_an_hour_at_most(issuer: Issuer) -> None:
    now = [0.0]

    async def walk() -> None:
        bearers = Bearers(settings(issuer), IssuerKeys(partial(fetched_keys, issuer.url), clock=lambda: now[0]))
        old = issuer.token()
        for _ in range(3):
            await bearers.verified(old)
        assert issuer.asked.count("/keys") == 1
        now[0] += COOLDOWN_S
        new = issuer.rotate()
        assert (await bearers.verified(issuer.token(new))).caller.role is Role.OPERATOR
        assert issuer.asked.count("/keys") == 2
        # Gone with the first look at what the issuer has now.
        with pytest.raises(UnknownCallerError, match="key that the issuer does not have"):
            await bearers.verified(old)
        # Whoever shows names of keys that nobody has makes no one ask the issuer more often.
        tokens = [issuer.token(Key(f"nobody-{number}", "ES256")) for number in range(20)]
        found = await asyncio.gather(*(bearers.verified(token) for token in tokens), return_exceptions=True)
        assert all(isinstance(one, UnknownCallerError) for one in found)
        assert issuer.asked.count("/keys") == 2
        now[0] += FRESH_S + 1
        issuer.rotate()
        with pytest.raises(UnknownCallerError):
            await bearers.verified(issuer.token(new))
        assert issuer.asked.count("/keys") == 3

    asyncio.run(walk())


def test_an_issuer_that_is_away_is_no_reason_to_call_a_token_wrong(issuer: Issuer) -> None:
    now = [0.0]

    async def walk() -> None:
        bearers = Bearers(settings(issuer), IssuerKeys(partial(fetched_keys, issuer.url), clock=lambda: now[0]))
        issuer.away = True
        for _ in range(3):
            with pytest.raises(IssuerAwayError):
                await bearers.verified(issuer.token())
        # It was asked once, and not by each of them.
        assert issuer.asked == [DISCOVERY]
        issuer.away = False
        now[0] += COOLDOWN_S
        await bearers.verified(issuer.token())
        issuer.away = True
        now[0] += FRESH_S + 1
        # What is known stays good for a day; what is not known cannot be told.
        await bearers.verified(issuer.token())
        now[0] += COOLDOWN_S
        with pytest.raises(IssuerAwayError):
            await bearers.verified(issuer.token(Key("another", "RS256")))
        now[0] += STALE_S
        with pytest.raises(IssuerAwayError):
            await bearers.verified(issuer.token())

    asyncio.run(walk())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (DISCOVERY, b"no json"),
        (DISCOVERY, b"[]"),
        (DISCOVERY, b"[" * 100_000),
        (DISCOVERY, b'{"issuer": "https://evil.example", "jwks_uri": "{url}/keys"}'),
        (DISCOVERY, b'{"issuer": "{url}", "jwks_uri": "http://evil.example/keys"}'),
        (DISCOVERY, b'{"issuer": "{url}", "jwks_uri": "file:///etc/passwd"}'),
        (DISCOVERY, b'{"issuer": "{url}", "jwks_uri": 5}'),
        ("/keys", b'{"keys": 5}'),
        ("/keys", b'{"keys": []}' + b" " * MAX_DOCUMENT_BYTES),
    ],
)
def test_documents_that_are_none_are_an_issuer_that_is_away(issuer: Issuer, path: str, said: bytes) -> None:
    issuer.said[path] = said.replace(b"{url}", issuer.url.encode())
    with pytest.raises(IssuerAwayError):
        caller(issuer, issuer.token())


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"alg": "RS512"},
        {"d": "AAAA"},
        {"n": "AQAB"},
        {"n": 5},
        {"kty": "oct"},
    ],
)  # fmt: skip
def test_a_published_key_that_is_not_for_verifying_verifies_nothing(issuer: Issuer, change: dict[str, Any]) -> None:
    issuer.said["/keys"] = json.dumps({"keys": [5, {**issuer.rsa.public(), **change}]}).encode()
    with pytest.raises(UnknownCallerError, match="key that the issuer does not have"):
        caller(issuer, issuer.token())


def test_a_key_that_is_too_short_or_there_twice_verifies_nothing(issuer: Issuer) -> None:
    short = Key("rsa-1", "RS256", bits=1_024)
    for keys in ([short], [issuer.rsa, Key("rsa-1", "RS256")]):
        issuer.keys = keys
        with pytest.raises(UnknownCallerError, match="key that the issuer does not have"):
            caller(issuer, jwt.encode(issuer.claims(), issuer.rsa.private, "RS256", headers={"kid": "rsa-1"}))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"issuer": "http://login.example"}, "https URL"),
        ({"issuer": "https://u:p@login.example"}, "https URL"),
        ({"issuer": "https://login.example/#x"}, "https URL"),
        ({"issuer": None}, "https URL"),
        ({"audience": []}, "audience is missing"),
        ({"audience": 5}, "write a text"),
        ({"algorithms": ["HS256"]}, "algorithms has others than RS256"),
        ({"algorithms": ["none"]}, "algorithms has others than RS256"),
        ({"algorithms": []}, "algorithms has others than RS256"),
        ({"roles": {}}, "roles is missing"),
        ({"roles": {"ml": "admin"}}, "use one of viewer, operator, reviewer"),
        ({"leeway_s": 3_000}, "use 0 to 300 seconds"),
        ({"leeway_s": True}, "use 0 to 300 seconds"),
        ({"client_secret": "x"}, "is an unknown key"),
        ({"name_claim": ""}, "name of a claim"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_what_to_write(said: dict[str, Any], words: str) -> None:
    text = json.dumps({"issuer": "https://login.example", "audience": "proctor", "roles": ROLES, **said})
    with pytest.raises(BadInputError, match=words):
        oidc_settings(text, source="the test")


def test_both_protocols_and_browsers_take_tokens_of_the_issuer_beside_those_of_the_list(
    bench: AuditBench, issuer: Issuer
) -> None:
    ci = new_token()
    bearers = open_bearers(settings(issuer))
    token = issuer.token()
    with serving_both(bench.desk, tokens={"ci": ci}, bearers=bearers) as (address, url), stub(address) as service:
        files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
        request = pb.SubmitRequest(suite=bench.suite_text(), files=files)
        audit = service.Submit(request, metadata=metadata_of(token), timeout=20).audit
        assert audit.submitter == "oidc:anna@example.org"
        (row,) = bench.records.actions.of(audit.audit_id)
        assert (row.name, row.via) == ("oidc:anna@example.org", f"oidc:{issuer.url}")
        with refused(grpc.StatusCode.UNAUTHENTICATED, "has expired"):
            service.List(pb.ListRequest(), metadata=metadata_of(issuer.token(exp=1)), timeout=20)
        with refused(grpc.StatusCode.PERMISSION_DENIED, "has no role here"):
            service.List(pb.ListRequest(), metadata=metadata_of(issuer.token(groups=[])), timeout=20)
        with client(url, token) as http, client(url, ci) as listed, client(url) as browser:
            assert [one["audit_id"] for one in http.get("/v1/audits").json()["audits"]] == [audit.audit_id]
            assert listed.get("/v1/audits").json() == {"audits": []}
            for bad, status in {issuer.token(exp=1): 401, issuer.token(groups=[]): 403, "a.b.c": 401}.items():
                assert http.get("/v1/audits", headers={"Authorization": f"Bearer {bad}"}).status_code == status
                assert browser.post("/login", data={"token": bad}).status_code == status
            kept = browser.post("/login", data={"token": issuer.token(exp=int(time.time()) + 120)})
            # The token and the leeway, and no longer.
            assert 120 <= int(kept.headers["set-cookie"].partition("Max-Age=")[2].partition(";")[0]) <= 181
            assert len(browser.get("/v1/audits").json()["audits"]) == 1
            changed = open_bearers(settings(issuer, roles={"ml": "viewer"}))
            with serving_both(bench.desk, bearers=changed) as (_, other), client(other) as elsewhere:
                # Who may do what is another there, and so it is for the session.
                elsewhere.cookies.update(browser.cookies)
                own = {"X-CSRF-Token": form_token(browser)}
                answer = elsewhere.post("/v1/audits", content=b"{}", headers=own)
                assert (answer.status_code, "is a viewer" in answer.text) == (403, True)


def test_an_issuer_that_is_away_is_503_and_unavailable(bench: AuditBench, issuer: Issuer) -> None:
    issuer.away = True
    token = issuer.token()
    with serving_both(bench.desk, bearers=open_bearers(settings(issuer))) as (address, url):
        with client(url, token) as http:
            assert http.get("/v1/audits").status_code == 503
            assert http.get("/v1/audits", headers={"Authorization": ""}).status_code == 401
        with stub(address) as service, refused(grpc.StatusCode.UNAVAILABLE, "did not answer just now"):
            service.List(pb.ListRequest(), metadata=metadata_of(token), timeout=20)
