"""A request of the API server (AdmissionReview, admission.k8s.io/v1), read within bounds. Pure.

Source: Kubernetes, "Dynamic Admission Control".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from proctor.domain.admission.reference import ModelReference
from proctor.domain.admission.workload import Named, has_template, named_by, versions_named
from proctor.domain.errors import BadInputError

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
#: The API server takes 3 MiB of a request, and an update's review holds the object as it was beside it as it is to be.
MAX_BODY_BYTES: Final = 6 << 20
#: Of brackets, braces and commas: a list of empty objects is a hundred times as large in memory as it came. A workload
#: has some thousand.
MAX_MARKS: Final = 300_000
_MAX_UID_CHARACTERS: Final = 128
_CREATE: Final = "CREATE"
_UPDATE: Final = "UPDATE"


class ReviewError(BadInputError):
    """A body that is no review."""


class Review(NamedTuple):
    """What the API server asks about."""

    uid: str
    """By which it knows the answer."""
    operation: str
    before: Named
    """What the object named; nothing where it is new."""
    now: Named
    makes_pods: bool
    """Whether Pods are made of it by a template."""

    @property
    def concerned(self) -> bool:
        """Whether anything is to be looked up: an object is created, or names something that it did not name."""
        if self.operation not in (_CREATE, _UPDATE) or not self.now.texts:
            return False
        return self.operation == _CREATE or not set(self.now.texts) <= set(self.before.texts)

    def versions(self) -> tuple[ModelReference, ...]:
        """The versions that are to be approved.

        An update is held to what it brings: what runs already is not stopped, and a controller that scales it down, or
        takes a finalizer away, changes nothing of what it names.

        Raises:
            NoReferenceError: an annotation names no versions.
        """
        wanted = versions_named(self.now)
        if self.operation == _CREATE:
            return wanted
        try:
            there = versions_named(self.before)
        except BadInputError:
            there = ()
        return tuple(one for one in wanted if one not in there)


def review_of(body: bytes) -> Review:
    """Read a body.

    Raises:
        ReviewError: it is no review, or a larger or deeper one than the API server sends. Nothing of it is repeated.
    """
    if len(body) > MAX_BODY_BYTES:
        raise ReviewError(f"the review is larger than {MAX_BODY_BYTES >> 20} MiB")
    if sum(map(body.count, (b"[", b"{", b","))) > MAX_MARKS:
        raise ReviewError(f"the review has more than {MAX_MARKS:,} values")
    try:
        plain = json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise ReviewError("the review nests too deep") from None
    except ValueError:
        raise ReviewError("the review is no JSON") from None
    if not isinstance(plain, dict) or plain.get("apiVersion") != API_VERSION or plain.get("kind") != KIND:
        raise ReviewError(f"the body is no {KIND} of {API_VERSION}")
    request = plain.get("request")
    if not isinstance(request, dict):
        raise ReviewError("the review has no request")
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not 0 < len(uid) <= _MAX_UID_CHARACTERS or not uid.isprintable():
        raise ReviewError("the review's request has no uid")
    if not isinstance(operation, str):
        raise ReviewError("the review's request has no operation")
    new, old = request.get("object"), request.get("oldObject")
    if operation in (_CREATE, _UPDATE) and not isinstance(new, dict):
        raise ReviewError("the review's request has no object")
    return Review(uid, operation, named_by(old), named_by(new), has_template(new))


def answered(review: Review, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The review as it goes back."""
    return {"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": review.uid, **answer}}


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
