"""What the registry's tests run on: a real MLflow server, a real registry worker, and a server that comes late."""

from __future__ import annotations

import base64
import importlib.util
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx

from proctor.localstack.mlflow_server import PASSWORD_VARIABLE, USER
from tests.support import REPOSITORY, ending, free_port, missing, wait_until

#: With which MLflow's server sends webhooks to this machine, and reads its table of them anew for each event.
WEBHOOKS = {
    "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
    "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
    "MLFLOW_WEBHOOK_CACHE_TTL": "0",
    # Without a key of its own, what it stored is not read back (mlflow#19896).
    "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY": base64.urlsafe_b64encode(b"a key of tests, of thirty-two b.").decode(),
}


@contextmanager
def mlflow_server(folder: Path, **environment: str) -> Iterator[str]:
    """MLflow's server on a free port, as the local stack runs it; yields its URL."""
    if importlib.util.find_spec("mlflow") is None:
        missing("mlflow is not installed: pip install mlflow")
    port = free_port()
    password = secrets.token_hex(16)
    uri = f"http://{USER}:{password}@127.0.0.1:{port}"
    log = folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "proctor.localstack.mlflow_server", str(folder), str(port)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "services"), PASSWORD_VARIABLE: password, **environment},
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: _healthy(uri) or process.poll() is not None, timeout_s=90, what="MLflow's health")
        assert process.poll() is None, log.read_text()[-3000:]
        yield uri
    finally:
        process.kill()
        process.wait(timeout=20)


def add_webhook(uri: str, url: str, secret: str, *events: tuple[str, str]) -> str:
    """Have MLflow's server send events, each as entity and action; returns the webhook's id."""
    said = {
        "name": f"to-{secrets.token_hex(4)}",
        "url": url,
        "secret": secret,
        "events": [{"entity": entity.upper(), "action": action.upper()} for entity, action in events],
    }
    answer = httpx.post(f"{uri}/api/2.0/mlflow/webhooks", json=said, trust_env=False, timeout=30)
    assert answer.is_success, answer.text
    return str(answer.json()["webhook"]["webhook_id"])


def _healthy(uri: str) -> bool:
    try:
        return httpx.get(f"{uri}/health", timeout=1.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def forwarder_on_demand(port: int, uri: str) -> Iterator[Callable[[], None]]:
    """Yields what starts a server on the port that passes every call on to `uri`."""

    class Forward(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {"Content-Type": "application/json"}
            answer = httpx.request(self.command, uri + self.path, content=body, headers=headers, trust_env=False)
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _pass_on

        def log_message(self, *arguments: object) -> None:
            pass

    servers: list[HTTPServer] = []

    def start() -> None:
        servers.append(HTTPServer(("127.0.0.1", port), Forward))
        threading.Thread(target=servers[0].serve_forever, args=(0.02,)).start()

    try:
        yield start
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@contextmanager
def registry_worker(home: Path, broker: str, registry_uri: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """`proctor worker registry`, while it consumes, with further variables."""
    ready = home / "run" / "worker-registry.ready"
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "services"),
        "PROCTOR_HOME": str(home),
        "PROCTOR_BROKER_URL": broker,
        "PROCTOR_REGISTRY_URI": registry_uri,
        **environ,
    }
    home.mkdir(exist_ok=True)
    with (home / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "proctor", "worker", "registry"],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    with ending(process):
        wait_until(lambda: ready.exists() or process.poll() is not None, timeout_s=30, what="the worker")
        assert process.poll() is None, (home / "worker.log").read_text()[-3000:]
        yield process
