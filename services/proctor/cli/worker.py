"""`proctor worker`: one service's Celery worker process."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import click

from proctor.domain.messages import QUEUES


@click.command()
@click.argument("service", type=click.Choice(QUEUES))
@click.option("--log-level", default="INFO", show_default=True, help="Celery's log level.")
def worker(service: str, log_level: str) -> None:
    """Run the worker of one SERVICE in the foreground; SIGTERM lets it finish its task and leave.

    Settings come from PROCTOR_* variables (PROCTOR_HOME, PROCTOR_BROKER_URL, ...). When it consumes its queue
    it writes HOME/run/worker-SERVICE.ready.
    """
    from celery.signals import worker_ready, worker_shutdown

    from proctor.runtime.files import write_atomic
    from proctor.runtime.tasks import configure, worker_settings

    settings = worker_settings()
    app = configure(settings)
    importlib.import_module(f"proctor.{service}.tasks")
    ready = settings.home / "run" / f"worker-{service}.ready"
    ready.unlink(missing_ok=True)

    def consuming(**_: Any) -> None:
        write_atomic(ready, b"consuming\n")

    def leaving(**_: Any) -> None:
        ready.unlink(missing_ok=True)

    worker_ready.connect(consuming, weak=False)
    worker_shutdown.connect(leaving, weak=False)

    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    arguments = ["worker", f"--queues={service}", f"--hostname={service}@%h", "--pool=solo", f"--loglevel={log_level}"]
    arguments += ["--without-gossip", "--without-mingle"]
    if service == "router":
        arguments += ["--beat", f"--schedule={settings.home / 'run' / 'beat-schedule'}"]
    app.worker_main(arguments)
