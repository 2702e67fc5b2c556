"""A real Kubernetes: the one that KUBECONFIG names, or the project's kit (`../shared/cluster`) started for the run.

The kit's state stays in a folder of the user's cache between runs, so that programs are unpacked and images loaded
once. Nothing of it runs when the tests are gone, however they went: its supervisor is a child that is told to end with
its parent.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from tests.cluster.sharing import shared, this_run
from tests.support import ending, free_port, missing

REPOSITORY: Final = Path(__file__).resolve().parents[2]
KIT: Final = REPOSITORY.parent / "shared" / "cluster" / "cluster"
#: Where the kit keeps its state from one run to the next.
FOLDER_VARIABLE: Final = "PROCTOR_TEST_CLUSTER"
#: At which pods see what listens on loopback outside, behind `Cluster.reachable`.
OUTSIDE: Final = "172.31.255.1"
#: Labels of namespaces that tests make for themselves.
OF_A_TEST: Final = {"proctor.dev/test": "yes"}
_START: Final = ("up", "--foreground", "--keda", "--timeout", "300")
#: Nobody waits longer for a command of kubectl's that waits for nothing by itself.
_COMMAND_S: Final = 120


class CommandError(AssertionError):
    """A command against the cluster failed; its words are the message."""


class Cluster:
    """A cluster's administrator."""

    def __init__(self, kubeconfig: Path, kubectl: str, api: httpx.Client, *, folder: Path | None) -> None:
        self.kubeconfig = kubeconfig
        self.api = api
        """Its API with the administrator's rights. A command of kubectl's takes a fifth of a second of a processor,
        which is much of a small machine for whoever looks twice a second."""
        self.folder = folder
        """The kit's state; None where the cluster is somebody's own."""
        self._kubectl = kubectl

    @property
    def is_kit(self) -> bool:
        """Whether this is the project's own kit, into which images can be loaded."""
        return self.folder is not None

    @property
    def kubectl_folder(self) -> str:
        """Where the command of that name lies."""
        return str(Path(self._kubectl).parent)

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that is to talk to the cluster."""
        return os.environ | {"KUBECONFIG": str(self.kubeconfig)}

    def run(
        self, *arguments: str, input: str | None = None, within_s: float = _COMMAND_S
    ) -> subprocess.CompletedProcess[str]:
        """A command of kubectl's, whatever comes of it."""
        return subprocess.run(
            [self._kubectl, *arguments],
            capture_output=True, text=True, input=input, env=self.environment, timeout=within_s,
        )  # fmt: skip

    def kubectl(self, *arguments: str, input: str | None = None, within_s: float = _COMMAND_S) -> str:
        """What a command of kubectl's prints.

        Raises:
            CommandError: it failed.
        """
        ran = self.run(*arguments, input=input, within_s=within_s)
        if ran.returncode != 0:
            raise CommandError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip() or ran.stdout.strip()}")
        return ran.stdout

    def listed(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Objects of a namespace: `listed("api/v1/pods", "proctor", "app=a")`.

        Raises:
            CommandError: the API server does not say.
        """
        group, _, plural = kind.rpartition("/")
        path, parameters = f"/{group}/namespaces/{namespace}/{plural}", {"labelSelector": selector}
        try:
            answer = self.api.get(path, params=parameters).raise_for_status()
        except httpx.HTTPError as error:
            raise CommandError(f"{path}: {error}") from error
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    def create(self, manifest: dict[str, Any], namespace: str = "", *, dry: bool = False) -> httpx.Response:
        """What the API server answers to a new object of one of the usual kinds, whatever that is."""
        version, plural = manifest["apiVersion"], f"{manifest['kind'].lower()}s"
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return self.api.post(f"{root}{inside}/{plural}", json=manifest, params={"dryRun": "All"} if dry else {})

    def may(self, account: str, verb: str, resource: str, *, namespace: str, inside: str) -> bool:
        """Whether a service account of a namespace may do something inside a namespace, as the API server says.

        Args:
            account: its name.
            verb: what it would do.
            resource: `plural.group`, `plural` of the core group, `plural/subresource`.
            namespace: the account's.
            inside: the one in which it would do so.
        """
        named, _, part = resource.partition("/")
        name, _, group = named.partition(".")
        review = {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{account}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
                "resourceAttributes": {"namespace": inside, "verb": verb, "group": group, "resource": name,
                                       "subresource": part},
            },
        }  # fmt: skip
        return bool(self.create(review).raise_for_status().json()["status"]["allowed"])

    def get(self, *arguments: str) -> Any:
        """Objects, parsed: `get("-n", "proctor", "pods")["items"]`."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *objects: Any, namespace: str | None = None) -> None:
        """Create or change objects."""
        where = [] if namespace is None else ["-n", namespace]
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl(*where, "apply", "-f", "-", input=json.dumps(listed))

    @contextmanager
    def namespace(self, name: str, *, restricted: bool = True, labels: dict[str, str] | None = None) -> Iterator[str]:
        """A new namespace, which is deleted at exit. A few letters more keep it apart from one that still ends."""
        name = f"{name}-{secrets.token_hex(2)}"
        profile = {"pod-security.kubernetes.io/enforce": "restricted"} if restricted else {}
        metadata = {"name": name, "labels": {**OF_A_TEST, **profile, **(labels or {})}}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    @contextmanager
    def forward(self, target: str, *, namespace: str) -> Iterator[int]:
        """A port of loopback that leads to a port of a pod or service (`service/gateway:8080`)."""
        what, _, port = target.rpartition(":")
        command = [self._kubectl, "-n", namespace, "port-forward", what, f":{port}"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment
        )
        with ending(process):
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", said)
            if found is None:
                raise CommandError(f"kubectl port-forward {target}: {said.strip()} {process.stdout.read()[:500]}")
            yield int(found[1])

    @contextmanager
    def reachable(self, port: int) -> Iterator[str]:
        """Let pods reach a port of this machine's loopback; yields the host and port by which they do."""
        if self.folder is None:
            missing("pods of a cluster of your own cannot reach this machine")
        inside = free_port()
        command = [sys.executable, str(KIT), "forward", "--dir", str(self.folder), "--into", str(inside)]
        process = subprocess.Popen([*command, f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL)
        with ending(process):
            yield f"{OUTSIDE}:{inside}"

    def wait(self, *arguments: str, within_s: float) -> None:
        """`kubectl wait`, with what it waited for in the error."""
        self.kubectl("wait", f"--timeout={within_s:.0f}s", *arguments, within_s=within_s + 15)


@contextmanager
def any_cluster(begin: Callable[[Cluster], None] = lambda _: None) -> Iterator[Cluster]:
    """The cluster to test on.

    A user's is taken as it is; the kit is started, and ends with the block. Where there is neither the test is skipped
    with that reason, and fails in CI.

    Args:
        begin: what is done with the kit when it has started, before anybody has it.
    """
    if named := os.environ.get("KUBECONFIG"):
        kubectl = shutil.which("kubectl") or missing("KUBECONFIG is set, but there is no kubectl on PATH")
        with _api(Path(named), kubectl) as api:
            yield Cluster(Path(named), kubectl, api, folder=None)
        return
    if not KIT.is_file():
        missing("no cluster: set KUBECONFIG to one that images can be loaded into")
    if os.geteuid() != 0:
        missing("the cluster's kit needs root; set KUBECONFIG to use another cluster")
    folder = Path(os.environ.get(FOLDER_VARIABLE) or cache_folder() / "cluster").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    kubectl = str(folder / "bin" / "kubectl")
    with (
        shared(folder, partial(_started, folder, kubectl, begin), this_run()) as kubeconfig,
        _api(kubeconfig, kubectl) as api,
    ):
        yield Cluster(kubeconfig, kubectl, api, folder=folder)


@contextmanager
def _api(kubeconfig: Path, kubectl: str) -> Iterator[httpx.Client]:
    """The API server behind kubectl's proxy, which knows every way of a kubeconfig to log in."""
    ends_with_us = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    command = [*ends_with_us, kubectl, "--kubeconfig", str(kubeconfig), "proxy", "--port=0"]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as proxy:
        assert proxy.stdout is not None
        said = proxy.stdout.readline()
        found = re.search(r"127\.0\.0\.1:\d+", said)
        if found is None:
            raise CommandError(f"kubectl proxy: {said.strip()}")
        with httpx.Client(base_url=f"http://{found[0]}", timeout=_COMMAND_S, trust_env=False) as client:
            yield client


def cache_folder() -> Path:
    """Where what is kept between runs lies."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor"


@contextmanager
def _started(folder: Path, kubectl: str, begin: Callable[[Cluster], None]) -> Iterator[Path]:
    with ExitStack() as stack:
        try:
            kubeconfig = _start(folder, stack)
        except CommandError as error:
            # What an earlier run left behind may be broken: once more, from nothing.
            print(f"the cluster did not start ({error}); its state is removed, and it is started anew", file=sys.stderr)
            subprocess.run([sys.executable, str(KIT), "down", "--purge", "--dir", str(folder)], check=True)
            folder.mkdir(parents=True, exist_ok=True)
            kubeconfig = _start(folder, stack)
        with _api(kubeconfig, kubectl) as api:
            begin(Cluster(kubeconfig, kubectl, api, folder=folder))
        yield kubeconfig


def _start(folder: Path, stack: ExitStack) -> Path:
    """Start it, to be ended with the stack; returns its kubeconfig when it is ready."""
    log = folder / "tests-up.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            # The kernel tells it when this process dies, however that comes.
            ["setpriv", "--pdeathsig", "TERM", sys.executable, str(KIT), *_START, "--dir", str(folder)],
            stdout=subprocess.PIPE, stderr=written, text=True,
        )  # fmt: skip
    stack.enter_context(ending(process, within_s=60))
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("KUBECONFIG="):
            return Path(line.partition("=")[2].strip())
    process.wait()
    raise CommandError(log.read_text()[-2000:] or f"exit code {process.returncode}")


def pods(cluster: Cluster, namespace: str, **labels: str) -> list[dict[str, Any]]:
    """The pods with these labels that are not on their way out."""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    found = cluster.listed("api/v1/pods", namespace, selector)
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod's condition says so."""
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def logs(cluster: Cluster, namespace: str, selector: str, *, lines: int = 40) -> str:
    """The ends of the logs of pods, for the message of a test that fails."""
    with suppress(subprocess.TimeoutExpired):
        options: Sequence[str] = ("--prefix", "--all-containers", "--ignore-errors", f"--tail={lines}")
        return cluster.run("-n", namespace, "logs", "-l", selector, *options).stdout
    return ""
