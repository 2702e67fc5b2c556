"""Real worker processes on a real broker, and a model that answers when a test lets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty
from typing import Any

from celery import Celery
from kombu import Connection

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.messages import Message, RunShards, ShardAnswer, ShardsAnswered, ShardToRun
from proctor.domain.trial import Arm, Decoding, Shard, Trial
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.redis.presence import Presence
from proctor.runtime.settings import Settings
from tests.support import REPOSITORY, wait_until


class HoldingModel:
    """An OpenAI-compatible server that answers nobody before `release`."""

    def __init__(self) -> None:
        self.held = 0
        self._released = threading.Event()
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with model._lock:
                    model.held += 1
                model._released.wait()
                choice = {"index": 0, "text": "4", "finish_reason": "stop"}
                usage = {"prompt_tokens": 5, "completion_tokens": 1}
                body = json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Whoever asked may have been killed."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def release(self) -> None:
        self._released.set()


@contextmanager
def holding_model() -> Iterator[HoldingModel]:
    holding = HoldingModel()
    thread = threading.Thread(target=holding.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield holding
    finally:
        holding.release()
        holding.server.shutdown()
        holding.server.server_close()
        thread.join()


class WorkerProcess:
    """A worker that consumes its queues."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def left(self) -> int:
        """Its exit code, once it is gone."""
        return self.process.wait(timeout=30)


class Home:
    """A home folder, its broker, and the workers that run on them."""

    def __init__(self, folder: Path, broker_url: str, **environment: str) -> None:
        self.folder = folder
        self.broker_url = broker_url
        self.settings = Settings(home=folder)
        self._environment = environment

    def command(self, service: str, *options: str) -> list[str]:
        return [sys.executable, "-P", "-m", "proctor", "worker", service, *options]

    @property
    def environment(self) -> Mapping[str, str]:
        path = {"PYTHONPATH": str(REPOSITORY / "services")}
        stores = {"PROCTOR_BROKER_URL": self.broker_url, "PROCTOR_LEDGER_URL": self.broker_url}
        # The tests' Valkey keeps nothing on disk.
        stores["PROCTOR_LEDGER_CHECK"] = "warn"
        return {**os.environ, **path, **stores, "PROCTOR_HOME": str(self.folder), **self._environment}

    @contextmanager
    def worker(self, service: str, *options: str) -> Iterator[WorkerProcess]:
        """A worker process that consumes its queues; it is ended, by force if need be."""
        ready = self.folder / "run" / f"worker-{service}.ready"
        log = self.folder / "worker.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.command(service, *options), env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
        worker = WorkerProcess(process, log)
        try:
            wait_until(lambda: ready.exists() or process.poll() is not None, timeout_s=40, what="the worker")
            assert process.poll() is None, worker.log
            yield worker
        finally:
            # A stopped process gets no other signal before it goes on.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def send(self, message: Message) -> None:
        with Celery(broker=self.broker_url) as app:
            app.send_task(message.task, kwargs={"message": message.plain()}, queue=message.queue, ignore_result=True)

    def put_shard(self, *prompts: str) -> str:
        """Store a shard; returns its digest."""
        trials = tuple(Trial(arm=Arm.CANONICAL, item_id=str(n), prompt=text) for n, text in enumerate(prompts))
        shard = Shard(shard_id="s1", stage="answer", arm=Arm.CANONICAL, trials=trials)
        return put_model(LocalArtifacts(Path(self.settings.artifacts)), shard)

    def send_shards(self, model_url: str, *shard_ids: str, attempt: int = 1, **fields: Any) -> None:
        """Have a worker ask shards of one prompt each."""
        digest = self.put_shard("What is two plus two?")
        shards = tuple(ShardToRun(shard_id=name, attempt=attempt, shard=digest) for name in shard_ids)
        endpoint = EndpointSpec(backend="openai", url=model_url, served_name="m", model_version=None)
        decoding = Decoding(max_tokens=4)
        self.send(
            RunShards(audit_id="a1", shards=shards, endpoint=endpoint, decoding=decoding, deadline_s=60.0, **fields)
        )

    def answers(self, count: int) -> list[ShardAnswer]:
        """The next answers that the router is sent, in the order in which they come."""
        found: list[ShardAnswer] = []
        with Connection(self.broker_url) as connection, connection.SimpleQueue("router") as queue:
            while len(found) < count:
                message = queue.get(timeout=20)
                message.ack()
                _, arguments, _ = message.payload
                found += ShardsAnswered.model_validate(arguments["message"]).answers
            try:
                raise AssertionError(f"one more: {queue.get(block=False).payload}")
            except Empty:
                return found

    @contextmanager
    def presence(self) -> Iterator[Presence]:
        presence = Presence(self.broker_url)
        try:
            yield presence
        finally:
            presence.close()


@contextmanager
def flushed(broker_url: str) -> Iterator[str]:
    """A Redis database that is emptied afterwards."""
    try:
        yield broker_url
    finally:
        with Connection(broker_url) as connection:
            connection.default_channel.client.flushdb()
