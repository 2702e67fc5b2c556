"""What an account has to be allowed, by what its process is told to do; and whether it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor.runtime.kubernetes.client import TIMEOUT_S, asking
from proctor.runtime.kubernetes.lease_name import LeaseName
from proctor.runtime.kubernetes.where import Where

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: Workloads that are told of decisions, by their API group.
_WORKLOADS: Final = {
    "apps": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "batch": ("jobs", "cronjobs"),
    "": ("pods",),
}


class Right(NamedTuple):
    """To do something with objects of a kind."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    """Empty for the whole cluster."""
    name: str = ""
    """Of the only object that is meant; empty for all."""

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        what = f"{kind} {self.name}" if self.name else kind
        return f"{self.verb} {what} in {self.namespace or 'every namespace'}"


def of_a_lease(lease: LeaseName) -> list[Right]:
    """To stand for a Lease that is there."""
    return [Right(verb, "coordination.k8s.io", "leases", *lease) for verb in ("get", "update")]


def of_slices(namespace: str) -> list[Right]:
    """To find replicas by EndpointSlices."""
    return [Right(verb, "discovery.k8s.io", "endpointslices", namespace) for verb in ("list", "watch")]


def of_events(where: Where) -> list[Right]:
    """To tell workloads of decisions."""
    rights = [] if where.named else [Right("list", "", "namespaces")]
    for namespace in where.named or ("",):
        lists = [Right("list", group, one, namespace) for group, kinds in _WORKLOADS.items() for one in kinds]
        rights += [*lists, Right("create", "events.k8s.io", "events", namespace)]
    return rights


def refused(api: ApiClient, rights: Sequence[Right]) -> list[Right]:
    """Those of them that this account does not have, by the API server's word.

    Raises:
        KubernetesError: the server does not answer.
    """
    from kubernetes.client import (
        AuthorizationV1Api,
        V1ResourceAttributes,
        V1SelfSubjectAccessReview,
        V1SelfSubjectAccessReviewSpec,
    )

    reviews, found = AuthorizationV1Api(api), list[Right]()
    for one in rights:
        asked = V1ResourceAttributes(
            verb=one.verb,
            group=one.group,
            resource=one.resource,
            namespace=one.namespace or None,
            name=one.name or None,
        )
        review = V1SelfSubjectAccessReview(spec=V1SelfSubjectAccessReviewSpec(resource_attributes=asked))
        with asking("the account's rights cannot be asked"):
            answer = reviews.create_self_subject_access_review(review, _request_timeout=TIMEOUT_S)
        if not answer.status.allowed:
            found.append(one)
    return found
