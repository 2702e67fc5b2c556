"""What a review of the API server is read as, whatever stands in it, and what it is answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.admission.approvals import KEPT_UNTIL, MAX_BYTES, approval_list
from proctor.domain.admission.reference import (
    ANNOTATION,
    MAX_REFERENCES,
    ModelReference,
    NoReferenceError,
    approval_key,
    references_of,
)
from proctor.domain.admission.verdict import Facts, Ground, Verdict, verdict_of
from proctor.domain.admission.workload import named_by, versions_named
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.standing import Standing, StandingKind
from proctor.domain.version_decision import AskedSuite, version_decision
from proctor.gateway.admission.answer import Decision, Mode, OnError, answer_of, failed, unreadable
from proctor.gateway.admission.review import MAX_BODY_BYTES, MAX_MARKS, ReviewError, answered, review_of

_NOW = datetime(2026, 11, 23, tzinfo=UTC)
_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


def _body(operation: str = "CREATE", *, now: Any = None, before: Any = None, **request: Any) -> bytes:
    asked = {"uid": "u-1", "operation": operation, "object": now, "oldObject": before, **request}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def _workload(models: str | None = None, template: str | None = None, job: str | None = None) -> dict[str, Any]:
    def metadata(text: str | None) -> dict[str, Any]:
        return {"metadata": {"annotations": {ANNOTATION: text}}} if text is not None else {"metadata": {}}

    found: dict[str, Any] = metadata(models)
    if template is not None:
        found["spec"] = {"template": metadata(template)}
    if job is not None:
        found["spec"] = {"jobTemplate": {"spec": {"template": metadata(job)}}}
    return found


def test_an_annotation_names_versions_each_once_and_in_order() -> None:
    assert references_of("org/a@1, b@sha256:ff ,org/a@1,c@d@2") == (
        ModelReference("org/a", "1"),
        ModelReference("b", "sha256:ff"),
        ModelReference("c@d", "2"),
    )
    assert references_of("b@sha256:ff")[0].is_digest


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        ("nonsense", "names 'nonsense', which is no version"),
        ("@1", "names '@1', which is no version"),
        ("a@", "names 'a@', which is no version"),
        (" , ", "names no model"),
        ("a\nb@1", "names 'a\\nb@1', which has characters that no version has"),
        ("\u202ea@1", "names '\\u202ea@1'"),
        ("a @1", "characters that no version has"),
        ("x" * 252 + "@1", "in 254 characters"),
        (",".join(f"a@{n}" for n in range(17)), "names 17 versions; 16 at most"),
        ("x" * 10_000, "has 10,000 characters"),
    ],
)
def test_what_names_no_version_is_said_on_one_printable_line(annotation: str, told: str) -> None:
    with pytest.raises(NoReferenceError) as refused:
        references_of(annotation)
    assert told in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1_200


@given(annotation=st.text(max_size=600))
def test_any_annotation_names_versions_or_is_refused_in_bounded_words(annotation: str) -> None:
    found, words = _read(annotation)
    assert words.isprintable()
    assert len(words) < 1_200
    assert bool(found) is not bool(words)
    assert len(found) <= MAX_REFERENCES
    assert not found or references_of(",".join(one.text for one in found)) == found


def _read(annotation: str) -> tuple[tuple[ModelReference, ...], str]:
    try:
        return references_of(annotation), ""
    except NoReferenceError as error:
        return (), str(error)


@given(one=_NAMES, other=_NAMES, version=_NAMES)
def test_two_versions_never_have_one_key(one: str, other: str, version: str) -> None:
    keys = [approval_key(ModelReference(name, version)) for name in (one, other)]
    assert (keys[0] == keys[1]) is (one == other) or None in keys
    for key in filter(None, keys):
        assert all(sign.isascii() and (sign.isalnum() or sign in "-._") for sign in key)
        assert len(key) <= 253
        assert key != KEPT_UNTIL


def test_a_key_that_kubernetes_would_refuse_is_none() -> None:
    assert approval_key(ModelReference("..", "1")) is None
    assert approval_key(ModelReference("é" * 60, "1")) is None
    assert approval_key(ModelReference("org/modèle_1", "2")) == "org_2fmod_c3a8le_5f1_402"


@pytest.mark.parametrize(
    ("workload", "named"),
    [
        (_workload("a@1"), ["a@1"]),
        (_workload(template="a@1"), ["a@1"]),
        (_workload(job="a@1"), ["a@1"]),
        (_workload("a@1", template="b@1,a@1"), ["a@1", "b@1"]),
        (_workload(), []),
        (None, []),
        ([], []),
        ({"metadata": None, "spec": {"template": 5}}, []),
        ({"metadata": {"annotations": {ANNOTATION: ["a@1"]}}}, []),
    ],
)
def test_a_workload_names_models_on_itself_and_on_the_template_of_its_pods(workload: Any, named: list[str]) -> None:
    assert [one.text for one in versions_named(named_by(workload))] == named


@pytest.mark.parametrize(
    ("operation", "now", "before", "asked"),
    [
        ("CREATE", _workload("a@1"), None, ["a@1"]),
        ("CREATE", _workload(), None, None),
        ("UPDATE", _workload("a@1"), _workload("a@1"), None),
        ("UPDATE", _workload("a@1,b@1"), _workload("a@1"), ["b@1"]),
        ("UPDATE", _workload(template="a@1"), _workload("a@1"), None),
        ("UPDATE", _workload("a@1"), _workload("nonsense"), ["a@1"]),
        ("UPDATE", _workload(), _workload("a@1"), None),
        ("DELETE", None, _workload("a@1"), None),
        ("CONNECT", _workload("a@1"), None, None),
    ],
)
def test_an_update_is_held_to_what_it_names_that_the_object_did_not(
    operation: str, now: Any, before: Any, asked: list[str] | None
) -> None:
    review = review_of(_body(operation, now=now, before=before))
    assert review.concerned is (asked is not None)
    if asked is not None:
        assert [one.text for one in review.versions()] == asked


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"nonsense",
        b"[]",
        b"5",
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": []}',
        b'{"apiVersion": NaN}',
        _body(uid=""),
        _body(uid=7),
        _body(uid="x" * 129),
        _body(uid="a\nb"),
        _body(5),  # type: ignore[arg-type]
        _body(now=[]),
        _body(now=None),
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"[" + b"{}," * (MAX_MARKS // 2) + b"{}]",
        b" " * (MAX_BODY_BYTES + 1),
    ],
    ids=range(20),
)
def test_what_is_no_review_is_refused_and_nothing_of_it_is_repeated(body: bytes) -> None:
    with pytest.raises(ReviewError) as refused:
        review_of(body)
    assert len(str(refused.value)) < 100


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["metadata", "spec", "template", "annotations", ANNOTATION, "jobTemplate"]) | st.text(),
                inner,
            )
        ),
    )
)
def test_any_object_is_read_without_a_fault(thing: Any) -> None:
    body = _body(now={"metadata": thing, "spec": thing}, before=thing)
    review = review_of(body)
    if review.concerned:
        with suppress(NoReferenceError):
            assert review.versions()


# Verdicts


def _standing(outcome: DecisionOutcome, *, audit: str = "a1", suite: str = "facts", **changes: Any) -> Standing:
    values: dict[str, Any] = {
        "audit_id": audit, "outcome": outcome, "decided": outcome, "kind": StandingKind.DECISION, "at": "2026-11-01",
        "sequence": 4, "audit_suite_id": suite, "model_id": "m", "model_digest": "sha256:1", "protocol_digest": suite,
    }  # fmt: skip
    return Standing(**{**values, **changes})


def _event(audit: str, text: str = "It is so.") -> DecisionEvent:
    return DecisionEvent(
        audit_id=audit, audit_suite_id="facts", model_id="m", model_digest="sha256:1", outcome=DecisionOutcome.APPROVE,
        reasons=(Reason(code="because", text=text),), fingerprint="", protocol_digest="", report_digest="",
        report_path="reports/a1", n_items=5,
    )  # fmt: skip


def _said(
    standings: list[Standing], asked: Sequence[AskedSuite] = (), faults: dict[str, str] | None = None, text: str = "So."
) -> Verdict:
    events = {one.audit_id: _event(one.audit_id, text) for one in standings}
    facts = Facts(version_decision(asked, standings, _NOW), events, faults or {})
    return verdict_of(ModelReference("m", "1"), facts, lambda event: f"https://p/{event.audit_id}")


_ASKED = AskedSuite("other", "sha256:o", None, "2026-11-02", "its audit is asked for and not begun")


@pytest.mark.parametrize(
    ("standings", "asked", "ground"),
    [
        ([], [], Ground.NEVER_AUDITED),
        ([_standing(DecisionOutcome.APPROVE)], [], Ground.APPROVED),
        ([_standing(DecisionOutcome.BLOCK)], [], Ground.BLOCKED),
        ([_standing(DecisionOutcome.REVIEW)], [], Ground.IN_REVIEW),
        ([], [_ASKED], Ground.PENDING),
        ([_standing(DecisionOutcome.APPROVE)], [_ASKED], Ground.PENDING),
        ([_standing(DecisionOutcome.BLOCK)], [_ASKED], Ground.BLOCKED),
        ([_standing(DecisionOutcome.APPROVE, expires_at="2026-11-22T00:00:00+00:00")], [], Ground.EXPIRED),
        ([_standing(DecisionOutcome.APPROVE, expires_at="2026-11-24T00:00:00+00:00")], [], Ground.APPROVED),
        (
            [_standing(DecisionOutcome.APPROVE), _standing(DecisionOutcome.BLOCK, audit="a2", suite="math")],
            [],
            Ground.BLOCKED,
        ),
    ],
)
def test_a_version_may_be_deployed_where_all_of_its_suites_approve_now(
    standings: list[Standing], asked: list[AskedSuite], ground: Ground
) -> None:
    found = _said(standings, asked)
    assert found.ground is ground
    assert found.admits is (ground is Ground.APPROVED)


def test_an_approval_that_the_log_does_not_bear_out_is_none() -> None:
    found = _said([_standing(DecisionOutcome.APPROVE)], faults={"a1": "entry 4 is not signed."})
    assert found.ground is Ground.NOT_ATTESTED
    assert found.sentence == (
        "'m@1' has no valid attestation: the record of audit a1 does not hold: entry 4 is not signed. "
        "Report: https://p/a1"
    )


@given(text=st.text(max_size=2_000))
def test_a_reason_from_elsewhere_is_told_on_one_bounded_line(text: str) -> None:
    sentence = _said([_standing(DecisionOutcome.BLOCK)], text=text).sentence
    assert sentence.isprintable()
    assert len(sentence) < 500


_VERDICTS = st.builds(
    Verdict,
    reference=st.sampled_from(["a@1", "b@2"]),
    ground=st.sampled_from(Ground),
    reason=st.text(st.characters(codec="ascii", min_codepoint=32), max_size=300),
    until=st.none() | st.just("2026-12-01T00:00:00+00:00"),
)


@given(mode=st.sampled_from(Mode), verdicts=st.lists(_VERDICTS, min_size=1, max_size=16), own=st.booleans())
def test_a_workload_is_refused_where_a_version_is_not_approved_and_the_namespace_enforces_it(
    mode: Mode, verdicts: list[Verdict], own: bool
) -> None:
    answer = answer_of(mode, verdicts, only_own=own)
    approved = all(one.ground is Ground.APPROVED for one in verdicts)
    assert answer.response["allowed"] is (approved or mode is not Mode.ENFORCE)
    assert (answer.decision is Decision.ADMITTED) is approved
    assert bool(answer.response.get("warnings")) is (own or (mode is Mode.WARN and not approved))
    if not answer.response["allowed"]:
        first = next(one for one in verdicts if not one.admits)
        assert answer.response["status"]["message"].startswith(first.sentence)
        assert answer.response["status"]["code"] == 403
        assert len(answer.response["status"]["message"]) < 3_000
    review = review_of(_body(now=_workload("a@1")))
    assert json.loads(json.dumps(answered(review, answer.response)))["response"]["uid"] == "u-1"


@pytest.mark.parametrize("mode", list(Mode))
def test_what_cannot_be_read_or_looked_up_is_refused_where_the_namespace_enforces_it(mode: Mode) -> None:
    enforces = mode is Mode.ENFORCE
    assert unreadable(mode, "no").response["allowed"] is not enforces
    assert failed(mode, OnError.REFUSE, "away").response["allowed"] is not enforces
    assert failed(mode, OnError.ADMIT, "away").response["allowed"]
    assert failed(mode, OnError.ADMIT, "away").decision is Decision.LET_THROUGH


def test_the_list_has_approvals_before_refusals_and_no_more_than_a_configmap_takes() -> None:
    refused = [
        Verdict(reference=f"m@{n}", ground=Ground.BLOCKED, reason="x" * 280, report_url="https://p/" + "r" * 60)
        for n in range(4_000)
    ]
    approved = Verdict(reference="good@1", ground=Ground.APPROVED, reason="", until="2026-12-01T00:00:00+00:00")
    found = approval_list([*refused, approved])
    assert found.data["good_401"].split("\n") == ["approve", "2026-12-01T00:00:00+00:00", "entry 0"]
    assert sum(len(key) + len(value.encode()) for key, value in found.data.items()) <= MAX_BYTES
    assert found.left_out == 4_001 - len(found.data) > 0
    assert found.data["m_400"].split("\n")[3].startswith("'m@0' is blocked: xxx")
