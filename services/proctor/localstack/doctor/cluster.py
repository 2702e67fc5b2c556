"""Whether a pod may do what its settings have it ask of Kubernetes' API server: by the server's own word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.errors import BadInputError
from proctor.localstack.doctor.installed import Finding, State
from proctor.runtime.kubernetes.client import KubernetesError, api_client
from proctor.runtime.kubernetes.lease_name import LEADER_LEASE, LeaseName
from proctor.runtime.kubernetes.rights import Right, of_a_lease, of_events, of_slices, refused
from proctor.runtime.kubernetes.where import EVENTS, Where
from proctor.runtime.settings import Settings

#: By which a process knows that it is in a pod.
IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"
_MEND: Final = "docs/kubernetes-client.md has the Role"


def examine_cluster(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """A line for each thing that is asked of the API server here; none where this is no pod, or nothing is asked."""
    if not environ.get(IN_A_POD):
        return []
    try:
        wanted = _wanted(settings, environ)
    except BadInputError as error:
        return [Finding("Kubernetes", State.MISSING, str(error), "mend the variable")]
    if not wanted:
        return []
    try:
        with api_client() as api:
            return [_finding(name, rights, refused(api, rights)) for name, rights in wanted.items()]
    except (BadInputError, KubernetesError) as error:
        mend = "mount the service account's token, and let the pod reach the API server"
        return [Finding("Kubernetes", State.MISSING, str(error), mend)]


def _wanted(settings: Settings, environ: Mapping[str, str]) -> dict[str, Sequence[Right]]:
    """What the settings have this process ask for, by what is said of it."""
    wanted = dict[str, Sequence[Right]]()
    lease, where = LeaseName.from_environment(environ), Where.from_environment(environ)
    if lease is not None:
        wanted[f"{LEADER_LEASE} {lease}"] = of_a_lease(lease)
    if where is not None:
        wanted[f"{EVENTS} {','.join(where.named) or '1'}"] = of_events(where)
    for name, endpoint in sorted(settings.endpoints.items()):
        if isinstance(endpoint.discovery, EndpointSliceDiscovery):
            wanted[f"replicas of {name}"] = of_slices(endpoint.discovery.namespace)
    return wanted


def _finding(name: str, rights: Sequence[Right], lacking: Sequence[Right]) -> Finding:
    if not lacking:
        return Finding("Kubernetes", State.OK, f"{name}: all {len(rights)} rights are there", required=False)
    # A finding each: a router has no endpoints to find, though its settings name them.
    return Finding(
        "Kubernetes", State.WARNING, f"{name}: may not {'; '.join(map(str, lacking))}", _MEND, required=False
    )
