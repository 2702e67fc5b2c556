"""`proctor worker`: one service's Celery worker process."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import log_level_option
from proctor.domain.errors import ExitCode
from proctor.domain.host import LOOPBACK
from proctor.domain.messages import ALSO_HANDLED, NOTIFIER, OPTIONAL_SERVICES, QUEUES, SERVICES

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from proctor.runtime.settings import Settings

INFERENCE = "inference"
REGISTRY = "registry"
ROUTER = "router"
SCORER = "scorer"
#: Messages at a time: while one is loaded or stored, the others keep the endpoint busy.
_INFERENCE_CONCURRENCY = 4
#: Services that use the record store. They migrate it before they take a message, or say why they cannot use it.
_KEEP_RECORDS = ("router", "perturbation", "scorer", NOTIFIER)
#: Services that look for something now and then.
_HAVE_A_TIMETABLE = (ROUTER, NOTIFIER)
#: gRPC's older polling wakes fewer threads for a message, which saves a client of many small ones a sixth of its
#: processor time. gRPC reads the variable when it is imported, and logs a line once the word is no more.
_GRPC_POLLING = ("GRPC_EXPERIMENTS", "-event_engine_client")


@click.command()
@click.argument("service", type=click.Choice((*SERVICES, *OPTIONAL_SERVICES)))
@log_level_option
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    show_default=f"{_INFERENCE_CONCURRENCY} for inference, 1 for the others",
    help="Messages at a time. The inference worker handles them in threads of one process. In the others more than "
    "one run in child processes, one each, and a single one runs in the worker itself.",
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
    default=LOOPBACK,
    show_default=True,
    help="Address to serve metrics on; 0.0.0.0 lets other machines scrape it. [env: PROCTOR_METRICS_HOST]",
)
@click.option(
    "--nice",
    "niceness",
    type=click.IntRange(0, 19),
    envvar="PROCTOR_NICE",
    default=0,
    show_default=True,
    help="Give way to other processes, by so much as nice(1) takes. `proctor up` has its workers do so, because a "
    "model server on the same machine should go first. [env: PROCTOR_NICE]",
)
def worker(
    service: str,
    log_level: str,
    concurrency: int | None,
    metrics_port: int | None,
    metrics_host: str,
    niceness: int,
) -> int:
    """Run the worker of one SERVICE in the foreground.

    SIGTERM lets it finish its tasks and leave. The inference worker has PROCTOR_GRACE_S seconds (45) for that: what
    it cannot finish by then it hands back, and another worker gets it. A second SIGTERM has it hand back at once.

    A router looks first whether the Redis of PROCTOR_LEDGER_URL keeps what is written there, and refuses one that
    evicts keys or keeps nothing on disk (PROCTOR_LEDGER_CHECK=warn accepts it).

    Settings come from PROCTOR_* variables (PROCTOR_HOME, PROCTOR_BROKER_URL, ...). When it consumes its queues, and all
    parts of it run (pool, metrics, the router's timetable), it writes HOME/run/worker-SERVICE.ready. Where one of them
    dies it ends with exit code 1; the exit code is 0 after a signal alone. Beside its metrics it serves /livez and
    /readyz to whoever asks: a worker that has messages and takes no step of them for PROCTOR_STALL_S is not live.

    \b
    Eight messages at a time, with http://127.0.0.1:9101/metrics:
      proctor worker inference --concurrency 8 --metrics-port 9101
    """
    from celery.signals import worker_init, worker_process_shutdown, worker_ready, worker_shutdown

    from proctor.runtime.files import write_atomic
    from proctor.runtime.garbage import prepare_for_many_objects
    from proctor.runtime.logs.configuring import adopt_celery, configure_logging
    from proctor.runtime.messaging.broker_loss import SurvivesItsBroker
    from proctor.runtime.messaging.events import KnowsTheExchange
    from proctor.runtime.messaging.foreign_entries import PutsAsideForeignTasks, read_carefully
    from proctor.runtime.messaging.sole_worker import SOLE_VARIABLE, give_back_what_the_former_had
    from proctor.runtime.messaging.tasks import (
        audit_created_at,
        configure,
        open_records_once,
        worker_id,
        worker_presence,
        worker_settings,
    )
    from proctor.runtime.messaging.versions import GivesBackUnknownTasks
    from proctor.runtime.messaging.worker_parts import Part, Timetable, WorkerParts
    from proctor.runtime.private import tighten_stores, work_privately
    from proctor.runtime.redis.presence import announcing
    from proctor.runtime.redis.promises import check_ledger
    from proctor.runtime.traces import tracing

    if service == INFERENCE:
        os.environ.setdefault(*_GRPC_POLLING)
    if niceness:
        os.nice(niceness)
    settings = worker_settings()
    work_privately()
    tighten_stores(settings.home, settings.artifacts)
    log = configure_logging(service, log_level, settings.log_format)
    adopt_celery(log)
    if concurrency is None:
        concurrency = _INFERENCE_CONCURRENCY if service == INFERENCE else 1
    ready = settings.home / "run" / f"worker-{service}.ready"
    ready.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ready.unlink(missing_ok=True)
    parts = WorkerParts(service, leave_s=settings.timing.grace_s, has_timetable=service in _HAVE_A_TIMETABLE)
    with ExitStack() as stack:
        tracing.begin(service)
        stack.callback(tracing.end)
        if service != INFERENCE:
            tracing.look_up_by(audit_created_at)
        if metrics_port is not None:
            from proctor.runtime.messaging.probes import WorkerProbes
            from proctor.runtime.metrics.server import TOKEN_VARIABLE, Address, serving_metrics
            from proctor.runtime.progress import Progress, note_in

            note_in(progress := Progress())
            keeps_records = service != INFERENCE
            probes = WorkerProbes(settings, parts, progress, QUEUES[service], keeps_records=keeps_records)
            address, token = Address(metrics_host, metrics_port), os.environ.pop(TOKEN_VARIABLE, "")
            collectors = partial(_collectors, service, settings)
            served = stack.enter_context(
                serving_metrics(service, address, settings, token, collectors=collectors, pages=probes.pages)
            )
            parts.add(Part("metrics server", served))
        if service in _KEEP_RECORDS:
            open_records_once()
        if service == SCORER and settings.signing_key is not None:
            from proctor.runtime.signing import open_signing_key

            # Refused now, and not at the first decision, which would be unsigned.
            open_signing_key(settings.home, settings.signing_key)
        if service == ROUTER:
            check_ledger(settings)
        if service == NOTIFIER:
            from proctor.notifier.tasks import check_settings

            check_settings(settings)
        read_carefully()
        app = configure(settings)
        GivesBackUnknownTasks.lease_s = settings.timing.lease_s
        app.steps["consumer"].update(
            (KnowsTheExchange, SurvivesItsBroker, PutsAsideForeignTasks, GivesBackUnknownTasks)
        )
        if service in _HAVE_A_TIMETABLE:
            app.steps["worker"].add(Timetable)
        for room in (service, *ALSO_HANDLED.get(service, ())):
            importlib.import_module(f"proctor.{room}.tasks")
        prepare_for_many_objects()
        workers: list[Any] = []
        is_consuming = threading.Event()

        def made(sender: Any, **_: Any) -> None:
            workers.append(sender)

        def consuming(**_: Any) -> None:
            if service == INFERENCE:
                _leave_by_any_signal()
            if not is_consuming.is_set():
                parts.add_celery(workers[0])
                is_consuming.set()

        def leaving(**_: Any) -> None:
            ready.unlink(missing_ok=True)

        def child_leaves(**_: Any) -> None:
            tracing.end()

        worker_process_shutdown.connect(child_leaves, weak=False)
        worker_init.connect(made, weak=False)
        worker_ready.connect(consuming, weak=False)
        worker_shutdown.connect(leaving, weak=False)
        if os.environ.get(SOLE_VARIABLE) == "1":
            give_back_what_the_former_had(app, QUEUES[service])
        stack.enter_context(announcing(worker_presence(), worker_id(), service, concurrency))
        if service == ROUTER:
            from proctor.router.expiry import expiring
            from proctor.router.retention.daily import retaining
            from proctor.runtime.kubernetes.leader import leading
            from proctor.runtime.kubernetes.lease_name import LeaseName

            # Released last, when nothing goes on that one does.
            Timetable.leads = stack.enter_context(leading(LeaseName.from_environment()))
            stack.enter_context(retaining(settings, Timetable.leads))
            stack.enter_context(expiring(settings, Timetable.leads))
        if service == REGISTRY:
            from proctor.registry.approvals import keeping_approvals
            from proctor.runtime.kubernetes.where import Where

            # Refused now, and not at the first decision.
            Where.from_environment()
            stack.enter_context(keeping_approvals(settings))
        stack.enter_context(parts.watched(is_consuming, lambda: write_atomic(ready, b"consuming\n")))
        _consume(app, service, log_level, concurrency, quiet=log.is_json)
    return parts.exit_code or next((worker.exitcode or 0 for worker in workers), ExitCode.FAILURE)


def _collectors(service: str, settings: Settings) -> Iterable[Collector]:
    """What a service's page tells beside what its processes record."""
    if service != ROUTER:
        return ()
    from proctor.router.collectors import collectors

    return collectors(settings)


def _consume(app: Any, service: str, log_level: str, concurrency: int, *, quiet: bool) -> None:
    """Run Celery's worker until it is told to leave.

    As `celery worker` does, and not by it: its command line imports all other commands, a prompt among them, which was
    a fifth of a second of each start.
    """
    from celery.concurrency import get_implementation
    from celery.utils.log import mlevel
    from celery.utils.nodenames import host_format

    if service == INFERENCE:
        # Tasks wait for a model and hold its connections, which is no work for several processes. A message that was
        # taken before a thread is free would wait here while another worker has one.
        pool = "threads"
        app.conf.worker_disable_prefetch = True
    else:
        # A pool of one process would only double the memory that a model takes.
        pool = "solo" if concurrency == 1 else "prefork"
    app.Worker(
        hostname=host_format(f"{service}@%h"),
        queues=",".join(QUEUES[service]),
        pool_cls=get_implementation(pool),
        concurrency=concurrency,
        loglevel=mlevel(log_level),
        without_gossip=True,
        without_mingle=True,
        # A banner is no JSON.
        quiet=quiet,
    ).start()


def _leave_by_any_signal() -> None:
    """Have Ctrl-C and SIGQUIT do what SIGTERM does: Celery's own way for them cannot end threads."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.getsignal(signal.SIGTERM))
