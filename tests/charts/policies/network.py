"""Who may reach whom: NetworkPolicies as Kubernetes reads them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple

from tests.charts.manifests import Manifest, Pod, pods, port_numbers, selects, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Clouds' instance metadata, which hands out credentials to whoever asks.
METADATA: Final = (ip_address("169.254.169.254"), ip_address("fd00:ec2::254"))
METADATA_PORT: Final = 80
#: Where the API server asks whether a workload may be deployed.
ADMISSION: Final = 8443
_NAMESPACE: Final = "kubernetes.io/metadata.name"
_DIRECTIONS: Final = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}


class Rule(NamedTuple):
    """One rule of a policy, in one direction."""

    policy: Manifest
    direction: str
    peers: list[Manifest]
    ports: list[Manifest]

    @property
    def name(self) -> str:
        """Where it is, in words."""
        return f"{title(self.policy)}: {self.direction.lower()} rule"


@policy
def everything_is_denied_to_begin_with(release: Release) -> Iterator[str]:
    """One policy takes in every pod of the release in both directions, and allows nothing."""
    if not _enforces(release):
        return
    denying = [
        one
        for one in release.of_kind("NetworkPolicy")
        if not one["spec"].get("ingress")
        and not one["spec"].get("egress")
        and set(one["spec"].get("policyTypes") or ()) == set(_DIRECTIONS)
    ]
    for pod in pods(release.objects):
        if not any(selects(one["spec"].get("podSelector"), pod.labels) for one in denying):
            yield f"{pod.name}: nothing denies what is not allowed"


@policy
def a_pod_has_a_policy_in_both_directions(release: Release) -> Iterator[str]:
    """Every pod is taken in by a policy of its own, beside the one that denies, and no policy takes in no pod."""
    if not _enforces(release):
        return
    here = list(pods(release.objects))
    for pod in here:
        for direction, (field, _) in _DIRECTIONS.items():
            # One that takes in every pod is the one that denies.
            own = [one for one in _of(release, pod) if direction in (one["spec"].get("policyTypes") or ())]
            if all(all(selects(one["spec"].get("podSelector"), other.labels) for other in here) for one in own):
                yield f"{pod.name}: no policy for {field}"
    for one in release.of_kind("NetworkPolicy"):
        if not any(selects(one["spec"].get("podSelector"), pod.labels) for pod in here):
            yield f"{title(one)}: takes in no pod"
        for direction, (field, _) in _DIRECTIONS.items():
            if one["spec"].get(field) and direction not in (one["spec"].get("policyTypes") or ()):
                yield f"{title(one)}: has rules for {field}, and policyTypes without {direction}"


@policy
def a_rule_names_its_ports(release: Release) -> Iterator[str]:
    """Every rule, in either direction, names ports with their protocol."""
    for rule in _rules(release):
        if not rule.ports:
            yield f"{rule.name}: any port"
        for port in rule.ports:
            if port.get("port") is None or port.get("protocol") is None:
                yield f"{rule.name}: port {port}"
            if port.get("endPort") is not None and int(port["endPort"]) - int(port["port"]) > 1_000:
                yield f"{rule.name}: ports {port['port']} to {port['endPort']}"


@policy
def no_rule_leads_to_the_metadata(release: Release) -> Iterator[str]:
    """What may go to any address does not go where clouds hand out credentials to whoever asks: not on HTTP's port."""
    for rule in _rules(release):
        if rule.direction != "Egress" or METADATA_PORT not in _numbers(rule):
            continue
        if not rule.peers:
            yield f"{rule.name}: to anybody on port {METADATA_PORT}"
        for block in (peer["ipBlock"] for peer in rule.peers if "ipBlock" in peer):
            taken_out = [ip_network(one) for one in block.get("except") or ()]
            for address in METADATA:
                if address in ip_network(block["cidr"]) and not any(address in one for one in taken_out):
                    yield f"{rule.name}: {block['cidr']} holds the metadata address {address}"


@policy
def a_rule_names_its_peers(release: Release) -> Iterator[str]:
    """No rule takes in every pod of the cluster, and none lets in anybody but the API server, which has no pods."""
    for rule in _rules(release):
        if rule.direction == "Ingress" and not rule.peers and [one.get("port") for one in rule.ports] != [ADMISSION]:
            yield f"{rule.name}: from anybody"
        for peer in rule.peers:
            if "ipBlock" not in peer and peer.get("namespaceSelector") == {} and not peer.get("podSelector"):
                yield f"{rule.name}: every pod of the cluster"
            if not peer:
                yield f"{rule.name}: a peer that is nobody"


@policy
def what_one_side_may_send_the_other_takes(release: Release) -> Iterator[str]:
    """A way out of one pod of the release to another is a way in there, on the same port, and the other way round."""
    if not _enforces(release):
        return
    here = list(pods(release.objects))
    out, into = set(_flows(release, here, "Egress")), set(_flows(release, here, "Ingress"))
    for sender, taker, port in sorted(out - into):
        yield f"{sender} may send to {taker} on port {port}, which does not let it in"
    for sender, taker, port in sorted(into - out):
        yield f"{taker} lets in {sender} on port {port}, which may not send there"


@policy
def a_port_of_a_rule_is_open(release: Release) -> Iterator[str]:
    """A rule that lets in names a port that the pod has."""
    for pod in pods(release.objects):
        open_ports = {int(port["containerPort"]) for container in pod.containers for port in container.ports}
        for one in _of(release, pod):
            for rule in _rules_of(one):
                if rule.direction != "Ingress":
                    continue
                for port in rule.ports:
                    numbers = port_numbers(pod, port.get("port", 0))
                    if not numbers or not numbers & open_ports:
                        yield f"{title(one)}: lets {pod.name} be reached at {port.get('port')}, which it has not"


@policy
def a_service_can_be_reached(release: Release) -> Iterator[str]:
    """Whoever may reach a pod's port by a Service is let in at the port behind it: a policy sees pods, not Services."""
    if not _enforces(release):
        return
    here = list(pods(release.objects))
    for service in release.of_kind("Service"):
        for pod in here:
            if not selects({"matchLabels": service["spec"].get("selector")}, pod.labels):
                continue
            for port in service["spec"].get("ports") or ():
                numbers = port_numbers(pod, port.get("targetPort", port["port"]))
                into = {
                    number
                    for one in _of(release, pod)
                    for rule in _rules_of(one)
                    if rule.direction == "Ingress"
                    for said in rule.ports
                    for number in port_numbers(pod, said.get("port", 0))
                }
                if not numbers & into:
                    yield f"{title(service)}: nobody is let in at port {port['port']} of {pod.name}"


def _enforces(release: Release) -> bool:
    """Values may leave policies out; then there is none, and nothing is said by half of them."""
    return bool((release.values.get("networkPolicy") or {}).get("enabled", True)) or any(
        release.of_kind("NetworkPolicy")
    )


def _of(release: Release, pod: Pod) -> list[Manifest]:
    """The policies that take a pod in."""
    return [one for one in release.of_kind("NetworkPolicy") if selects(one["spec"].get("podSelector"), pod.labels)]


def _rules(release: Release) -> Iterator[Rule]:
    for one in release.of_kind("NetworkPolicy"):
        yield from _rules_of(one)


def _rules_of(one: Manifest) -> Iterator[Rule]:
    for direction, (field, peers) in _DIRECTIONS.items():
        for rule in one["spec"].get(field) or ():
            yield Rule(one, direction, rule.get(peers) or [], rule.get("ports") or [])


def _numbers(rule: Rule) -> set[int]:
    """The ports of a rule that are given by number; one without ports is asked for HTTP's."""
    given: set[int] = set()
    for port in rule.ports:
        first = port.get("port")
        if isinstance(first, int):
            given.update(range(first, int(port.get("endPort") or first) + 1))
    return given if rule.ports else {METADATA_PORT}


def _flows(release: Release, here: list[Pod], direction: str) -> Iterator[tuple[str, str, int]]:
    """Sender, taker and port of what rules of one direction allow among the release's own pods.

    A rule that names all of a namespace, nobody or a block of addresses is about others.
    """
    for pod in here:
        for one in _of(release, pod):
            for rule in _rules_of(one):
                if rule.direction != direction:
                    continue
                for other in here:
                    if not any(_is_peer(peer, other) for peer in rule.peers):
                        continue
                    taker = other if direction == "Egress" else pod
                    sender = pod if direction == "Egress" else other
                    for said in rule.ports:
                        for number in port_numbers(taker, said.get("port", 0)):
                            yield sender.name, taker.name, number


def _is_peer(peer: dict[str, Any], pod: Pod) -> bool:
    if "ipBlock" in peer:
        return False
    namespaces = peer.get("namespaceSelector")
    own = pod.owner["metadata"].get("namespace", "")
    if namespaces is not None and not selects(namespaces, {_NAMESPACE: own}):
        return False
    if not (peer.get("podSelector") or {}):
        # All of a namespace: meant for others, such as Prometheus' own.
        return False
    return selects(peer.get("podSelector"), pod.labels)
