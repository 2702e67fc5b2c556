"""What tests of the admission gate need of a cluster: namespaces that opt in, the chart's objects, and the gateway."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.gateway.admission.certificates.issuing import Issued, issue
from proctor.gateway.admission.certificates.source import Pair
from proctor.runtime.kubernetes.objects import KubernetesObjects
from proctor.runtime.records.standings import NewSignOff, Standings
from proctor.runtime.records.store import Records
from tests.charts.rendering import render
from tests.cluster.kit import Cluster
from tests.standing_audits import DecidedAudits
from tests.support import REPOSITORY, ending, free_port, missing, wait_until

#: The address of this machine for what is inside the kit's network.
OUTSIDE = "172.31.255.1"
#: By which an object of a test is found, and no other's.
IMAGE = "python:3.11-slim-bookworm"
DASHBOARD = "https://proctor.example.org"
_KIT = REPOSITORY.parent / "shared" / "cluster" / "cluster"
Manifest = dict[str, Any]
_CREATED: Final = "created"
#: What lets an API server go on reading lists of approvals, and stays for good: see `hold_parameters`.
HELD_PARAMETERS: Final = "proctor-holds-configmap-parameters"


class Api:
    """The API server, as an administrator has it; it keeps its connection, unlike kubectl."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        view = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        here = view["clusters"][0]["cluster"]
        self.url = str(here["server"])
        self.authority = _laid(folder / "ca.pem", here["certificate-authority-data"])
        self._cluster = cluster
        self._folder = folder

    @contextmanager
    def as_service_account(self, namespace: str, name: str) -> Iterator[KubernetesObjects]:
        """As a pod of this service account has it."""
        token = self._folder / f"{namespace}-{name}.token"
        token.write_text(self._cluster.kubectl("create", "token", name, "-n", namespace))
        tls = ssl.create_default_context(cafile=str(self.authority))
        with closing(KubernetesObjects(self.url, tls, token)) as objects:
            yield objects


def _laid(path: Path, text: str) -> Path:
    path.write_bytes(base64.b64decode(text))
    return path


def chart_objects(mode: str, namespace: str, **admission: Any) -> list[Manifest]:
    """The chart's objects of the gate, for a release of a namespace's name in it."""
    release = render({"admission": {"mode": mode, **admission}}, release=namespace, namespace=namespace)
    return [json.loads(json.dumps(one)) for one in release.objects if _is_of_the_gate(one)]


def hold_parameters(cluster: Cluster) -> None:
    """Have the API server go on reading ConfigMaps for policies when a test's binding goes: it cannot begin again."""
    release = render({"admission": {"mode": "policy"}})
    held = [one for one in release.objects if one["metadata"]["name"] == HELD_PARAMETERS]
    assert len(held) == 2
    for one in held:
        cluster.kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", input=json.dumps(one))


def fullname(namespace: str) -> str:
    """What the names of `chart_objects` begin with."""
    return f"{namespace}-proctor"


def _is_of_the_gate(one: Mapping[str, Any]) -> bool:
    name = one["metadata"]["name"]
    if one["kind"] == "ServiceAccount":
        return str(name).endswith(("-gateway", "-registry"))
    return str(name).endswith(("-admission", "-approvals")) or "-approved-models" in name


def pod(name: str, models: str | None, **metadata: Any) -> Manifest:
    """A Pod that a restricted namespace takes."""
    annotations = {} if models is None else {"proctor.dev/model": models}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations, **metadata},
        "spec": pod_spec(),
    }


def pod_spec() -> Manifest:
    """Of a container that does nothing."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "c", "image": IMAGE, "command": ["sleep", "3600"], "securityContext": security}
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{**container, "imagePullPolicy": "IfNotPresent"}],
    }


def made_of(kind: str, name: str, models: str, replicas: int = 1) -> Manifest:
    """What makes Pods by a template that names models."""
    labels = {"app": name}
    template: Manifest = {"metadata": {"labels": labels, "annotations": {"proctor.dev/model": models}}}
    template["spec"] = pod_spec()
    spec: Manifest
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
        job: Manifest = {"template": template}
        spec = job if kind == "Job" else {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    spec |= {} if kind == "DaemonSet" else {"replicas": replicas}
    spec |= {"serviceName": name} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Namespace:
    """A namespace that asks for the gate, or does not."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster

    def asks(self, mode: str | None) -> None:
        """Have it ask for a mode; None for none."""
        label = "proctor.dev/admission-" if mode is None else f"proctor.dev/admission={mode}"
        self._cluster.kubectl("label", "namespace", self.name, "--overwrite", label)

    def refusal(self, manifest: Manifest, *, dry: bool = True) -> str:
        """What the API server says against an object; empty where it takes it."""
        told = self.told(manifest, dry=dry)
        return "" if told.endswith(_CREATED) else told

    def told(self, manifest: Manifest, *, dry: bool = True) -> str:
        """Its warnings, and whether it took the object or why not."""
        answer = self._cluster.create(manifest, self.name, dry=dry)
        warnings = [f"Warning: {said}" for said in re.findall(r'299 \S+ "((?:[^"\\]|\\.)*)"', _warning(answer))]
        outcome = _CREATED if answer.is_success else f"Error: {answer.json()['message']}"
        return "\n".join([*warnings, outcome])


def _warning(answer: httpx.Response) -> str:
    # Header values are bytes; Kubernetes writes UTF-8.
    return b", ".join(value for name, value in answer.headers.raw if name.lower() == b"warning").decode()


def _environment(cluster: Cluster) -> dict[str, str]:
    folder = str(cluster.kubeconfig.parent)
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), **({"CLUSTER_DIR": folder} if cluster.is_kit else {})}


@contextmanager
def applied(cluster: Cluster, objects: Sequence[Manifest]) -> Iterator[None]:
    """Objects that are there while the block lasts."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    cluster.kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", input=text)
    try:
        yield
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)


@contextmanager
def reached_from_inside(cluster: Cluster) -> Iterator[tuple[int, str]]:
    """A port of this machine, and the URL under which what is inside the cluster reaches it."""
    if not cluster.is_kit:
        missing("the API server of a cluster that is elsewhere cannot call this machine: use the kit")
    port = free_port()
    forwarder = subprocess.Popen(
        [sys.executable, str(_KIT), "forward", "--into", str(port), f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(cluster),
    )
    with ending(forwarder):
        assert forwarder.stdout is not None
        assert forwarder.stdout.readline().strip()
        yield port, f"https://{OUTSIDE}:{port}"


def by_url(objects: Sequence[Manifest], url: str, authority: bytes | None, **changes: Any) -> list[Manifest]:
    """The webhook's configuration with this machine in the place of the gateway's service."""
    found = [one for one in objects if one["kind"] == "ValidatingWebhookConfiguration"]
    for one in found:
        for webhook in one["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": url + path}
            if authority is not None:
                webhook["clientConfig"]["caBundle"] = base64.b64encode(authority).decode()
            webhook |= changes
    return found


class Fixed:
    """One certificate for as long as the test takes."""

    every_s = 3600.0

    def __init__(self) -> None:
        self.issued: Issued = issue((OUTSIDE,), timedelta(hours=1), datetime.now(UTC))

    def pair(self) -> Pair:
        """See `CertificateSource`."""
        return Pair(self.issued.certificate, self.issued.key)


def standings_at(records: Records, time: datetime) -> Standings:
    """The standings of a store at another time."""
    return Standings(records._engine, lambda: time)


def approve_until(audits: DecidedAudits, audit_id: str, end: datetime) -> None:
    """A person's approval of a day, which ends then."""
    sign_off = NewSignOff(
        Verb.OVERRIDE, DecisionOutcome.APPROVE, SignedBy(name="anna", via="token"), "It is so.", "QA-1", 1
    )
    standings_at(audits.records, end - timedelta(days=1)).sign(audit_id, sign_off, key=audits.key)


def withdraw(audits: DecidedAudits, audit_id: str) -> None:
    """A person's word that an approved version is blocked."""
    sign_off = NewSignOff(
        Verb.REJECT, DecisionOutcome.BLOCK, SignedBy(name="anna", via="token"), "Trained on the test split.", "QA-2"
    )
    audits.records.standings.sign(audit_id, sign_off, key=audits.key)


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait for what the API server does a little later."""
    wait_until(condition, timeout_s=30.0, what=what)
