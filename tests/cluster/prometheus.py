"""A real Prometheus in the cluster, Debian's, which is built without a discovery by Kubernetes' API.

So a second container of its pod lists the pods, and Prometheus asks it, as it asks any discovery over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx

from tests.cluster.kit import REPOSITORY, Cluster
from tests.support import wait_until

#: The label by which the tests' values let a namespace's pods read metrics.
LABELS: Final = {"proctor.dev/monitoring": "yes"}
_RULES: Final = REPOSITORY / "charts" / "proctor" / "rules"
_NAME: Final = "prometheus"


#: Pods with a port named `metrics`, in the form of Prometheus' http_sd, for each request anew.
_DISCOVERY: Final = """
import http.server, json, ssl, sys, urllib.request
from pathlib import Path

account = Path("/var/run/secrets/kubernetes.io/serviceaccount")
context = ssl.create_default_context(cafile=account / "ca.crt")

def pods(namespace):
    url = f"https://kubernetes.default.svc/api/v1/namespaces/{namespace}/pods"
    token = (account / "token").read_text()
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=5, context=context) as answer:
        return json.load(answer)["items"]

def targets():
    for namespace in sys.argv[1:]:
        for pod in pods(namespace):
            labels = pod["metadata"].get("labels", {})
            for container in pod["spec"]["containers"]:
                for port in container.get("ports", ()):
                    if port.get("name") == "metrics" and pod["status"].get("podIP"):
                        yield {
                            "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
                            "labels": {
                                "pod": pod["metadata"]["name"],
                                "namespace": namespace,
                                "component": labels.get("app.kubernetes.io/component", ""),
                                "pool": labels.get("proctor.dev/pool", ""),
                            },
                        }

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(list(targets())).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def _config() -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "5s", "scrape_timeout": "4s", "evaluation_interval": "5s"},
        "rule_files": ["/etc/prometheus/rules-*.yaml"],
        "scrape_configs": [{
            "job_name": "proctor",
            "http_sd_configs": [{"url": "http://127.0.0.1:8000/", "refresh_interval": "3s"}],
        }],
    }  # fmt: skip


def _manifests(namespace: str, watched: Sequence[str]) -> list[dict[str, Any]]:
    data = {"prometheus.yml": json.dumps(_config())}
    data |= {f"rules-{path.name}": path.read_text("utf-8") for path in sorted(_RULES.glob("*.yaml"))}
    subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": namespace}
    container = {
        "name": "prometheus", "image": "proctor/prometheus:0.1.0", "imagePullPolicy": "IfNotPresent",
        "args": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/data",
                 "--web.listen-address=:9090"],
        "ports": [{"name": "http", "containerPort": 9090}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": "http"}, "periodSeconds": 2},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/prometheus"}, {"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    security = container["securityContext"]
    discovery = {
        "name": "discovery", "image": "proctor/router:0.1.0", "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", _DISCOVERY, *watched], "securityContext": security,
    }  # fmt: skip
    pod = {
        "serviceAccountName": _NAME, "terminationGracePeriodSeconds": 5,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001,
                            "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container, discovery],
        "volumes": [{"name": "config", "configMap": {"name": _NAME}}, {"name": "data", "emptyDir": {}}],
    }  # fmt: skip
    metadata, labels = {"name": _NAME, "namespace": namespace}, {"app": _NAME}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
         "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}},
    ]  # fmt: skip
    role = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    for one in watched:
        there = {"name": namespace, "namespace": one}
        made += [
            {"apiVersion": f"{role}/v1", "kind": "Role", "metadata": there, "rules": rules},
            {"apiVersion": f"{role}/v1", "kind": "RoleBinding", "metadata": there, "subjects": [subject],
             "roleRef": {"apiGroup": role, "kind": "Role", "name": namespace}},
        ]  # fmt: skip
    return made


class Prometheus:
    """Its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def names(self) -> set[str]:
        """Every metric that was scraped or recorded so far."""
        return set(self._get("label/__name__/values"))

    def query(self, expression: str) -> list[dict[str, Any]]:
        """An instant query's series."""
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def over(self, expression: str, begin_s: float, end_s: float, step_s: float = 1.0) -> list[tuple[float, float]]:
        """Times (of day, in seconds) and values of an expression that has one series."""
        found = self._get("query_range", query=expression, start=str(begin_s), end=str(end_s), step=str(step_s))
        return [(float(at_s), float(value)) for one in found["result"] for at_s, value in one["values"]]

    def rules(self) -> list[dict[str, Any]]:
        """Groups of rules that it evaluates."""
        found: list[dict[str, Any]] = self._get("rules")["groups"]
        return found

    def _get(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30)
        answer.raise_for_status()
        return answer.json()["data"]


@contextmanager
def running_prometheus(cluster: Cluster, *watched: str) -> Iterator[str]:
    """A Prometheus that scrapes these namespaces' pods; yields its own namespace."""
    with cluster.namespace("monitoring", labels=LABELS) as namespace:
        cluster.apply(*_manifests(namespace, watched))
        cluster.kubectl("-n", namespace, "rollout", "status", "deployment", _NAME, "--timeout=90s", within_s=100)
        with reached_prometheus(cluster, namespace) as prometheus:
            wait_until(lambda: bool(prometheus.query("up == 1")), timeout_s=60, what="a first scrape")
        yield namespace


@contextmanager
def reached_prometheus(cluster: Cluster, namespace: str) -> Iterator[Prometheus]:
    """Its API, through a forwarded port."""
    with cluster.forward(f"deployment/{_NAME}:9090", namespace=namespace) as port:
        yield Prometheus(f"http://127.0.0.1:{port}")
