"""A small release to which no policy has an objection: each planted fault (`planted.py`) is one change to it."""

from __future__ import annotations

import copy
from typing import Any, Final

from tests.charts.manifests import COMPONENT, Manifest
from tests.charts.rendering import NAMESPACE, Release

_NAME: Final = "app.kubernetes.io/name"
_INSTANCE: Final = "app.kubernetes.io/instance"
_SELECTED: Final = {_NAME: "proctor", _INSTANCE: "good"}
_HARDENED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def good_release() -> Release:
    """The release, new each time, so that it may be changed."""
    objects = tuple(copy.deepcopy(_objects()))
    return Release("good", {"networkPolicy": {"enabled": True}}, objects, ("keda.sh/v1alpha1",))


def _objects() -> list[Manifest]:
    return [
        *_router(),
        *_inference(),
        *_valkey(),
        *_migration(),
        _object("networking.k8s.io/v1", "NetworkPolicy", "good", "", spec={
            "podSelector": {"matchLabels": dict(_SELECTED)}, "policyTypes": ["Ingress", "Egress"],
        }),
    ]  # fmt: skip


def _router() -> list[Manifest]:
    lease = _object("coordination.k8s.io/v1", "Lease", "good-router", "router", spec={})
    role = _object("rbac.authorization.k8s.io/v1", "Role", "good-router", "router", rules=[
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["good-router"],
         "verbs": ["get", "update"]},
    ])  # fmt: skip
    binding = _object("rbac.authorization.k8s.io/v1", "RoleBinding", "good-router", "router",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "good-router"},
        subjects=[{"kind": "ServiceAccount", "name": "good-router", "namespace": NAMESPACE}],
    )  # fmt: skip
    deployment = _worker("router", replicas=2, token=True)
    deployment["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": _selector("router")}
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    return [
        _account("router"), lease, role, binding, deployment, _service("router", 9090, "metrics"), _budget("router"),
        _policy(
            "router",
            into=[{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}],
                   "ports": [_port("metrics")]}],
            out=[{"to": [{"podSelector": _selector("valkey")}], "ports": [_port(6379)]},
                 {"ports": [_port(443), _port(6443)]}],
        ),
        _object("v1", "ConfigMap", "good-settings", "router",
                data={"PROCTOR_GRACE_S": "45", "PROCTOR_RECORDS_MIGRATE": "never"}),
    ]  # fmt: skip


def _inference() -> list[Manifest]:
    deployment = _worker("inference")
    del deployment["spec"]["replicas"]
    deployment["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _selector("inference"),
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    scaled = _object("keda.sh/v1alpha1", "ScaledObject", "good-inference", "inference", spec={
        "scaleTargetRef": {"name": "good-inference"},
        "minReplicaCount": 0, "maxReplicaCount": 10,
        "fallback": {"failureThreshold": 3, "replicas": 1},
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {
            "stabilizationWindowSeconds": 120,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}},
        "triggers": [{"type": "prometheus", "metadata": {
            "serverAddress": "http://prometheus.monitoring:9090", "query": "sum(proctor_audits)", "threshold": "8",
            "ignoreNullValues": "false"}}],
    })  # fmt: skip
    policy = _policy("inference", out=[{"to": [{"podSelector": _selector("valkey")}], "ports": [_port(6379)]}])
    return [_account("inference"), deployment, _budget("inference"), scaled, policy]


def _valkey() -> list[Manifest]:
    deployment = _deployment("valkey", "proctor/valkey:1", ["valkey-server", "/etc/valkey/valkey.conf"])
    deployment["spec"]["strategy"] = {"type": "Recreate"}
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    container["ports"] = [{"name": "redis", "containerPort": 6379, "protocol": "TCP"}]
    for probe in ("readinessProbe", "livenessProbe"):
        container[probe] = {"tcpSocket": {"port": "redis"}, "timeoutSeconds": 5, "failureThreshold": 3}
    container["volumeMounts"] += [
        {"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/valkey", "readOnly": True},
    ]  # fmt: skip
    pod["volumes"] += [
        {"name": "data", "persistentVolumeClaim": {"claimName": "good-valkey"}},
        {"name": "config", "secret": {"secretName": "good-valkey", "defaultMode": 0o440}},
    ]
    claim = _object("v1", "PersistentVolumeClaim", "good-valkey", "valkey", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})  # fmt: skip
    secret = _object("v1", "Secret", "good-valkey", "valkey", stringData={
        "valkey.conf": "requirepass drawn", "broker-url": "redis://:drawn@good-valkey:6379/0"})  # fmt: skip
    into = [
        {"from": [{"podSelector": _selector(one)} for one in ("router", "inference", "migrate")],
         "ports": [_port("redis")]},
    ]  # fmt: skip
    return [
        _account("valkey"), deployment, claim, secret, _service("valkey", 6379, "redis"), _policy("valkey", into=into),
    ]  # fmt: skip


def _migration() -> list[Manifest]:
    job = _object("batch/v1", "Job", "good-migrate", "migrate", spec={
        "activeDeadlineSeconds": 600, "backoffLimit": 3,
        "template": _template("migrate", "proctor/router:1", ["records", "migrate"]),
    })  # fmt: skip
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    account, hook = _account("migrate"), {"helm.sh/hook": "pre-upgrade"}
    deletion = {"helm.sh/hook-delete-policy": "before-hook-creation"}
    account["metadata"]["annotations"] = {**hook, "helm.sh/hook-weight": "-10", **deletion}
    job["metadata"]["annotations"] = {**hook, "helm.sh/hook-weight": "0", **deletion}
    out = [{"to": [{"podSelector": _selector("valkey")}], "ports": [_port(6379)]}]
    return [account, job, _policy("migrate", out=out)]


def _worker(service: str, *, replicas: int = 1, token: bool = False) -> Manifest:
    deployment = _deployment(service, f"proctor/{service}@sha256:{'0' * 64}", ["worker", service], replicas=replicas)
    pod = deployment["spec"]["template"]["spec"]
    pod |= {"terminationGracePeriodSeconds": 90, "automountServiceAccountToken": token}
    container = pod["containers"][0]
    container["args"] += ["--metrics-host", "0.0.0.0", "--metrics-port", "9090"]
    container["ports"] = [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}]
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        container[probe] = {"httpGet": {"path": path, "port": "metrics"}, "timeoutSeconds": 5, "failureThreshold": 3}
    container["envFrom"] = [{"configMapRef": {"name": "good-settings"}}]
    container["env"] = [
        {"name": "PROCTOR_BROKER_URL", "valueFrom": {"secretKeyRef": {"name": "good-valkey", "key": "broker-url"}}},
        {"name": "PROCTOR_HOME", "value": "/tmp"},
    ]
    return deployment


def _deployment(component: str, image: str, arguments: list[str], *, replicas: int = 1) -> Manifest:
    return _object("apps/v1", "Deployment", f"good-{component}", component, spec={
        "replicas": replicas, "selector": _selector(component),
        "template": _template(component, image, arguments),
    })  # fmt: skip


def _template(component: str, image: str, arguments: list[str]) -> Manifest:
    return {
        "metadata": {"labels": {**_SELECTED, COMPONENT: component}},
        "spec": {
            "serviceAccountName": f"good-{component}",
            "automountServiceAccountToken": False,
            "shareProcessNamespace": True,
            "securityContext": {
                "runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": component, "image": image, "imagePullPolicy": "IfNotPresent", "args": arguments,
                "securityContext": dict(_HARDENED),
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},
                              "limits": {"cpu": "1", "memory": "128Mi"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
        },
    }  # fmt: skip


def _account(component: str) -> Manifest:
    return _object("v1", "ServiceAccount", f"good-{component}", component, automountServiceAccountToken=False)


def _service(component: str, port: int, target: str) -> Manifest:
    return _object("v1", "Service", f"good-{component}", component, spec={
        "selector": {**_SELECTED, COMPONENT: component},
        "ports": [{"name": target, "port": port, "targetPort": target, "protocol": "TCP"}],
    })  # fmt: skip


def _budget(component: str) -> Manifest:
    spec = {"maxUnavailable": 1, "selector": _selector(component)}
    return _object("policy/v1", "PodDisruptionBudget", f"good-{component}", component, spec=spec)


def _policy(component: str, *, into: list[Manifest] | None = None, out: list[Manifest] | None = None) -> Manifest:
    return _object("networking.k8s.io/v1", "NetworkPolicy", f"good-{component}", component, spec={
        "podSelector": _selector(component), "policyTypes": ["Ingress", "Egress"],
        "ingress": into or [], "egress": out or [],
    })  # fmt: skip


def _selector(component: str) -> Manifest:
    return {"matchLabels": {**_SELECTED, COMPONENT: component}}


def _port(port: int | str) -> Manifest:
    return {"port": port, "protocol": "TCP"}


def _object(api: str, kind: str, name: str, component: str, **rest: Any) -> Manifest:
    labels = {**_SELECTED, "app.kubernetes.io/version": "1", "app.kubernetes.io/managed-by": "Helm"}
    labels |= {COMPONENT: component} if component else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": labels}, **rest}
