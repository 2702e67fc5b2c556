"""Secrets that were planted everywhere stand nowhere: a real gateway, real workers, and callers who make mistakes."""

from __future__ import annotations

import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from proctor.cli.demo import demo_suite
from proctor.localstack.stack import LocalStack
from proctor.runtime.grpc.tokens import new_token, token_digest
from tests.end_to_end.test_stack_from_outside import proctor, secrets_of
from tests.integration.audit_support import gateway_process
from tests.integration.http_gateway import client
from tests.oidc_issuer import AUDIENCE, Issuer, issuing
from tests.registry_webhooks import created, signed, trigger_file
from tests.standing_stack import standing_stack
from tests.support import free_port, wait_until
from tests.trace_collector import Collector, collecting

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(300),
]

#: Files whose purpose is to hold a secret, for their owner alone.
_KEPT = ("run/", "mlflow-webhooks/", "state.json", "stack.json", "valkey")


class CommandLines(threading.Thread):
    """What stood on any process' command line meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[bytes] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.05):
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(entry.read_bytes())
                except OSError:
                    continue

    def __enter__(self) -> CommandLines:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


@contextmanager
def an_endpoint_that_repeats_what_it_is_sent() -> Iterator[tuple[str, list[str]]]:
    """Refuses every request, with the key that came in the words of its refusal; yields its URL and what came."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.headers.get("Authorization", ""))
            said = json.dumps({"error": {"message": f"bad key {heard[-1]}"}}).encode()
            self.send_response(401)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def signing_key(path: Path) -> str:
    """Write a key as PEM; the line of it that is secret."""
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem)
    path.chmod(0o600)
    return pem.decode().splitlines()[1]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def planted(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[tuple[LocalStack, dict[str, str]]]:
    """A stack whose workers hold keys and send traces, and what is planted in them."""
    folder = tmp_path_factory.mktemp("planted")
    api_key, openai_key = f"sk-{new_token()}", f"sk-{new_token()}"
    key, mail = signing_key(folder / "signing.pem"), new_token()
    notify = {
        "rules": [{"to": ["audit@example.org"], "on": ["approve", "review", "block"]}],
        # Nobody listens there, of which logs tell.
        "mail": {"server": f"mailto://proctor:{mail}@127.0.0.1:9/?from=p@example.org", "domains": ["example.org"]},
    }
    (folder / "notify.json").write_text(json.dumps(notify))
    (folder / "notify.json").chmod(0o600)
    variables = {
        "PROCTOR_API_KEY": api_key,
        "OPENAI_API_KEY": openai_key,
        "PROCTOR_SIGNING_KEY": str(folder / "signing.pem"),
        "PROCTOR_NOTIFY": f"@{folder / 'notify.json'}",
        **traces_to(collector, traces := new_token()),
    }
    with standing_stack(folder / "home", "--no-gateway", **variables) as home:
        stack = LocalStack.attach(home)
        of_the_stack = secrets_of(stack)
        own = {"api key": api_key, "other api key": openai_key, "signing key": key, "mail password": mail}
        yield stack, own | {"collector's token": traces} | of_the_stack


def traces_to(collector: Collector, token: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {token}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }


def submitted(http: httpx.Client, suite: dict[str, Any]) -> str:
    answer = http.post("/v1/audits", content=json.dumps(suite))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["audit_id"])


def mistakes(http: httpx.Client, secret: str) -> list[httpx.Response]:
    """What somebody does who puts a secret where it does not belong."""
    basic = {"Authorization": f"Basic {secret}"}
    return [
        http.get("/v1/audits", params={"token": secret}),
        http.get(f"/v1/audits/{secret}"),
        http.get(f"/{secret}"),
        http.get("/v1/audits", headers=basic),
        http.post("/login", data={"token": f"{secret}x"}, params={"token": secret}),
        http.post("/login", data={"token": f"{secret}x"}, headers={"Accept": "text/html"}),
        http.post("/login", data={"password": secret, "next": f"//{secret}.example"}),
        http.post("/v1/webhooks/mlflow", content=b"{}", headers={"X-MLflow-Signature": secret}, params={"s": secret}),
        http.post("/v1/webhooks/huggingface", content=b"{}", headers={"X-Webhook-Secret": f"{secret}x"}),
    ]


def test_no_secret_stands_in_a_log_a_record_a_report_a_store_an_answer_or_on_a_command_line(
    planted: tuple[LocalStack, dict[str, str]], collector: Collector, tmp_path: Path, bundle: Path
) -> None:
    stack, secrets = planted
    anna, ops, webhook, hub = (new_token() for _ in range(4))
    secrets |= {"anna's token": anna, "ops' token": ops, "webhook": webhook, "hub": hub}
    listed = {
        "anna": {"token": token_digest(anna), "role": "reviewer", "sees_all": True},
        "ops": {"token": ops, "sees_all": True},
    }
    (tmp_path / "first.json").write_text(demo_suite("reference-clean", bundle))
    seen: list[httpx.Response] = []
    with (
        issuing() as issuer,
        an_endpoint_that_repeats_what_it_is_sent() as (endpoint, heard),
        CommandLines() as command_lines,
    ):
        bearer = issuer.token()
        secrets["the issuer's token"] = bearer
        options = ("--http", str(free_port()), "--triggers", str(trigger_file(tmp_path)), "--log-level", "DEBUG")
        variables = {
            **stack.settings.to_environment(),
            "PROCTOR_GATEWAY_TOKENS": json.dumps(listed),
            "PROCTOR_GATEWAY_OIDC": oidc(issuer),
            "PROCTOR_GATEWAY_MLFLOW_SECRETS": webhook,
            "PROCTOR_GATEWAY_HUGGINGFACE_SECRETS": hub,
            **traces_to(collector, secrets["collector's token"]),
            "PROCTOR_LOG_FORMAT": "json",
        }
        with gateway_process(stack.home, *options, **variables):
            log = (stack.home / "gateway.log").read_text()
            url = log.partition("serves ")[2].split()[0].rstrip(',"')
            with client(url, anna) as http, client(url) as browser, client(url, bearer) as person:
                audits = [submitted(http, suite_of("reference-leaked", bundle))]
                seen += [browser.post("/login", data={"token": one}) for one in (ops, bearer, anna)]
                assert [one.status_code for one in seen] == [303] * 3
                secrets |= {f"session {n}": one.cookies["proctor-session"] for n, one in enumerate(seen)}
                seen.append(person.get("/v1/audits"))
                event = json.dumps(created()).encode()
                seen.append(http.post("/v1/webhooks/mlflow", content=event, headers=signed(event, webhook)))
                assert [one.status_code for one in seen[-2:]] == [200, 202]
                for secret in (anna, bearer, webhook, hub):
                    with client(url) as stranger:
                        seen += mistakes(stranger, secret)
                audits.append(given_at_the_terminal(stack, tmp_path, bundle, endpoint))
                wait_until(lambda: all(ended(http, one) for one in audits), timeout_s=150, what="the audits' ends")
                seen += [
                    http.get(path) for one in audits for path in (f"/v1/audits/{one}", f"/v1/audits/{one}/actions")
                ]
                seen += [browser.get(path) for path in ("/", "/audits", f"/audits/{audits[0]}", "/openapi.json")]
                assert f"Bearer {secrets['api key']}" in heard
            shown = proctor("audit", "list", "--home", str(stack.home)).stdout
    exported = tmp_path / "export.jsonl"
    assert proctor("record", "export", str(exported), "--home", str(stack.home)).returncode == 0
    places = {
        "an answer": "\n".join(_told(one) for one in seen).encode(),
        "a command line": b"\n".join(command_lines.seen),
        "the terminal": shown.encode(),
        "the export": exported.read_bytes(),
        "the record": records_of(stack),
        "Redis": redis_of(stack),
        "a trace": b"\n".join(collector.raw),
        **files_of(stack.home),
    }
    found = [
        (name, place) for place, text in places.items() for name, secret in secrets.items() if secret.encode() in text
    ]
    # A session goes to its browser, and to nobody else.
    assert [one for one in found if not (one[0].startswith("session") and one[1] == "an answer")] == []
    # And what is no secret is found where it has to be, so that each of these was read.
    for place in ("an answer", "the terminal", "the export", "the record", "Redis", "a trace"):
        assert audits[0].encode() in places[place], place
    assert b"gateway" in places["a command line"]
    logs = [text for name, text in places.items() if name.endswith(".log")]
    assert any(audits[0].encode() in text for text in logs)
    assert any(b"/v1/webhooks/mlflow ended with 401" in text for text in logs)
    assert any(b"reference-leaked" in text for name, text in places.items() if name.endswith(".html"))


def oidc(issuer: Issuer) -> str:
    return json.dumps({"issuer": issuer.url, "audience": AUDIENCE, "roles": {"ml": "operator"}})


def suite_of(model: str, bundle: Path) -> dict[str, Any]:
    suite: dict[str, Any] = json.loads(demo_suite(model, bundle))
    suite["dataset_config"]["sample_size"] = 60
    return suite


def given_at_the_terminal(stack: LocalStack, folder: Path, bundle: Path, endpoint: str) -> str:
    """An audit of an endpoint that gets the key, and repeats it."""
    suite = suite_of("reference-clean", bundle)
    suite["model_config"]["endpoint"] = endpoint
    (folder / "repeats.json").write_text(json.dumps(suite))
    done = proctor("audit", "submit", str(folder / "repeats.json"), "--home", str(stack.home), "--format", "json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["audit"]["audit_id"])


def ended(http: httpx.Client, audit: str) -> bool:
    return http.get(f"/v1/audits/{audit}").json()["state"] in ("decided", "failed")


def _told(answer: httpx.Response) -> str:
    # Without the request's own URL, which its sender made.
    return f"{answer.status_code} {dict(answer.headers)} {answer.text}"


def records_of(stack: LocalStack) -> bytes:
    import sqlalchemy as sa

    from proctor.runtime.records.engine import open_engine
    from proctor.runtime.records.tables import METADATA

    engine = open_engine(stack.settings.records_url)
    with engine.connect() as connection:
        rows = [str(row) for table in METADATA.sorted_tables for row in connection.execute(sa.select(table))]
    engine.dispose()
    return "\n".join(rows).encode("utf-8", "replace")


def redis_of(stack: LocalStack) -> bytes:
    """Every key with its value, of every database of the stack's."""
    said = b""
    for url in {stack.settings.broker_url, stack.settings.ledger_url}:
        with closing(redis.Redis.from_url(url)) as store:
            for key in store.scan_iter():
                read: dict[bytes, Callable[[bytes], Any]] = {
                    b"string": store.get,
                    b"hash": store.hgetall,
                    b"list": lambda one: store.lrange(one, 0, -1),
                    b"set": store.smembers,
                    b"zset": lambda one: store.zrange(one, 0, -1, withscores=True),
                }
                kind = store.type(key)
                said += key + b" " + repr(read[kind](key) if kind in read else "").encode() + b"\n"
    return said


def files_of(home: Path) -> dict[str, bytes]:
    """What lies in a home, decompressed, but for files that are there to hold a secret."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.is_file() and not name.startswith(_KEPT):
            content = path.read_bytes()
            with suppress(zlib.error):
                content += zlib.decompress(content, 47)
            found[name] = content
    return found
