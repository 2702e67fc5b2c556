"""Which workloads a decision is told to, where, and what becomes of more than can be told."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.client import ApiException

from proctor.domain.admission.reference import ModelReference
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.errors import BadInputError
from proctor.domain.scope import Scope
from proctor.registry.kubernetes import events, workloads
from proctor.registry.kubernetes.events import Decided, Telling
from proctor.runtime.kubernetes.client import KubernetesError, asking
from proctor.runtime.kubernetes.where import Where
from tests.support import wait_until


def an_event(model_id: str, model_digest: str) -> DecisionEvent:
    """A decision on a model."""
    digest = "sha256:" + "2" * 64
    return DecisionEvent(
        audit_id="a1", audit_suite_id="facts", model_id=model_id, model_digest=model_digest,
        outcome=DecisionOutcome.BLOCK, reasons=(Reason(code="because", text="It is so."),), fingerprint=digest,
        protocol_digest=digest, report_digest=digest, report_path="r.html", n_items=600, scope=Scope.WORDING,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "where"),
    [("", None), ("0", None), ("1", Where()), ("models", Where(("models",))), ("a, b,a", Where(("a", "b")))],
)
def test_where_decisions_are_told_is_every_namespace_that_asked_or_those_that_are_named(
    said: str, where: Where | None
) -> None:
    assert Where.from_environment({"PROCTOR_KUBERNETES_EVENTS": said}) == where


@pytest.mark.parametrize("said", ["yes!", "A", "a b", ",", "a/../b", "-a"])
def test_what_names_no_namespaces_is_refused_by_its_variable(said: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_KUBERNETES_EVENTS is"):
        Where.from_environment({"PROCTOR_KUBERNETES_EVENTS": said})


@pytest.mark.parametrize(
    ("name", "version", "meant"),
    [
        ("acme~gpt", "3", True),
        ("acme/gpt", "3", True),
        ("acme/gpt", "sha256:" + "1" * 64, True),
        ("acme/gpt", "2", False),
        ("acme/gpt-2", "3", False),
    ],
)
def test_a_decision_is_of_who_names_its_version_or_its_weights(name: str, version: str, meant: bool) -> None:
    decided = Decided(an_event("acme/gpt", "sha256:" + "1" * 64), "3")
    assert decided.is_of(ModelReference(name, version)) is meant


def test_a_server_that_does_not_answer_is_a_line_of_the_log_and_the_next_decision_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Any] = [KubernetesError("no answer"), RuntimeError("a defect"), 3]

    def tell(*_: object) -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    @contextmanager
    def client() -> Iterator[None]:
        yield

    monkeypatch.setattr(events, "tell_workloads", tell)
    monkeypatch.setattr(events, "api_client", client)
    telling = Telling(Where(), lambda _: pytest.fail("nothing is looked up"))
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            telling.tell(Decided(an_event("acme/gpt", "sha256:" + "1" * 64), "3"))
        wait_until(lambda: "3 workloads are told" in caplog.text, what="the third")
    assert "workloads are not told: no answer" in caplog.text
    assert "RuntimeError: a defect" in caplog.text


def test_more_decisions_than_may_wait_are_not_told_and_hold_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    telling = Telling(Where(), lambda _: pytest.fail("nothing is looked up"))
    assert telling._begun.acquire()
    for _ in range(events._MAX_WAITING + 2):
        telling.tell(Decided(an_event("acme/gpt", "sha256:" + "1" * 64), "3"))
    assert caplog.text.count("too many wait") == 2


def test_of_very_many_objects_the_first_are_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def lists(**named: Any) -> SimpleNamespace:
        asked.append(named["limit"])
        page = {"items": [{}] * named["limit"], "metadata": {"continue": "more"}}
        return SimpleNamespace(data=json.dumps(page))

    assert len(list(workloads._pages(lists, "Pods"))) == workloads.MAX_OBJECTS
    assert set(asked) == {workloads.PAGE}
    assert "only the first 5000 are looked at" in caplog.text


def test_what_a_server_says_of_a_refusal_is_cut_and_printable() -> None:
    refusal = ApiException(status=403, reason="Forbidden")
    refusal.body = json.dumps({"message": "no\n\x1b[31m" + "x" * 10_000})
    with pytest.raises(KubernetesError) as caught, asking("it"):
        raise refusal
    said = str(caught.value)
    assert caught.value.status == 403
    assert said.isprintable()
    assert len(said) < 250
