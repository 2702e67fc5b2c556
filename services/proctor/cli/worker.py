"""`proctor worker`: one service's Celery worker process."""

from __future__ import annotations

import importlib
import logging
from contextlib import ExitStack
from typing import Any

import click

from proctor.domain.messages import SERVICES


@click.command()
@click.argument("service", type=click.Choice(SERVICES))
@click.option("--log-level", default="INFO", show_default=True, help="Celery's log level.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Tasks at a time. More than one run in child processes, one each; a single one runs in the worker itself.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    envvar="PROCTOR_METRICS_PORT",
    help="Serve Prometheus metrics on this port. Off by default. [env: PROCTOR_METRICS_PORT]",
)
@click.option(
    "--metrics-host",
    envvar="PROCTOR_METRICS_HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address to serve metrics on; 0.0.0.0 lets other machines scrape it. [env: PROCTOR_METRICS_HOST]",
)
def worker(service: str, log_level: str, concurrency: int, metrics_port: int | None, metrics_host: str) -> None:
    """Run the worker of one SERVICE in the foreground; SIGTERM lets it finish its tasks and leave.

    Settings come from PROCTOR_* variables (PROCTOR_HOME, PROCTOR_BROKER_URL, ...). When it consumes its queue
    it writes HOME/run/worker-SERVICE.ready.

    \b
    Two shards at a time, with http://127.0.0.1:9101/metrics:
      proctor worker inference --concurrency 2 --metrics-port 9101
    """
    from celery.signals import worker_ready, worker_shutdown

    from proctor.runtime.events import KnowsTheExchange
    from proctor.runtime.files import write_atomic
    from proctor.runtime.garbage import prepare_for_many_objects
    from proctor.runtime.tasks import configure, worker_settings

    settings = worker_settings()
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with ExitStack() as stack:
        if metrics_port is not None:
            from proctor.runtime.metrics_server import Address, serving_metrics

            stack.enter_context(serving_metrics(service, Address(metrics_host, metrics_port), settings))
        app = configure(settings)
        app.steps["consumer"].add(KnowsTheExchange)
        importlib.import_module(f"proctor.{service}.tasks")
        prepare_for_many_objects()
        ready = settings.home / "run" / f"worker-{service}.ready"
        ready.unlink(missing_ok=True)

        def consuming(**_: Any) -> None:
            write_atomic(ready, b"consuming\n")

        def leaving(**_: Any) -> None:
            ready.unlink(missing_ok=True)

        worker_ready.connect(consuming, weak=False)
        worker_shutdown.connect(leaving, weak=False)

        arguments = ["worker", f"--queues={service}", f"--hostname={service}@%h", f"--loglevel={log_level}"]
        # A pool of one process would only double the memory that a model takes.
        arguments += ["--pool=solo"] if concurrency == 1 else ["--pool=prefork", f"--concurrency={concurrency}"]
        arguments += ["--without-gossip", "--without-mingle"]
        if service == "router":
            arguments += ["--beat", f"--schedule={settings.home / 'run' / 'beat-schedule'}"]
        app.worker_main(arguments)
