"""What an API server sends about a workload, whose annotations anybody may have written."""

from __future__ import annotations

import json
import re

from proctor.domain.admission.reference import ANNOTATION, MAX_REFERENCES, NoReferenceError, approval_key, references_of
from proctor.gateway.admission.answer import Mode, answer_of, unreadable
from proctor.gateway.admission.review import ReviewError, answered, review_of
from tests.fuzz.target import Target

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)


def _feed(data: bytes) -> None:
    review = review_of(data)
    told = answered(review, answer_of(Mode.ENFORCE, []).response)
    assert json.loads(json.dumps(told))["response"]["uid"] == review.uid
    if not review.concerned:
        return
    try:
        versions = review.versions()
    except NoReferenceError as error:
        refusal = json.dumps(unreadable(Mode.ENFORCE, str(error)).response, ensure_ascii=False)
        assert len(refusal) < 1_000, "a refusal is longer than anybody reads"
        assert refusal.isprintable()
        return
    assert len(versions) <= 2 * MAX_REFERENCES
    for version in versions:
        assert references_of(version.text) == (version,), "a version is another after it was written"
        key = approval_key(version)
        assert key is None or _KEY.fullmatch(key), "a key that no ConfigMap takes"


def _review(operation: str, new: object, old: object = None) -> bytes:
    request = {"uid": "u-1", "operation": operation, "object": new, "oldObject": old}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def _seeds() -> list[bytes]:
    def named(models: str) -> dict[str, object]:
        return {"metadata": {"annotations": {ANNOTATION: models}}}

    deployment = {"spec": {"template": named("org/a@1")}}
    cron_job = {"spec": {"jobTemplate": {"spec": {"template": named("org~b@2, c@sha256:ff")}}}}
    return [
        _review("CREATE", named("org/a@1")),
        _review("UPDATE", cron_job, deployment),
        _review("DELETE", None, deployment),
        _review("CREATE", named("nonsense")),
    ]


TARGETS = (
    Target(
        "admission_review",
        ("proctor.gateway.admission.review", "proctor.domain.admission.reference", "proctor.domain.admission.workload"),
        _feed,
        _seeds,
        (ReviewError,),
        (b'"annotations"', ANNOTATION.encode(), b'"spec"', b'"template"', b'"jobTemplate"', b'"UPDATE"', b"@", b","),
    ),
)
