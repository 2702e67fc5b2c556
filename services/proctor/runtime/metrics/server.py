"""A process' `/metrics`: what it and its children record, summed, over HTTP, and whatever else is asked of that port.

prometheus_client's multiprocess mode: each process counts in memory-mapped files of its own, and the worker's main
process reads them all at a scrape. So it is the same for tasks that run in the worker itself (pool `solo`), in
threads, and in child processes (`prefork`), which may come and go; what a killed one has counted stays.

With PROCTOR_METRICS_TOKEN set, a scraper has to show it (`Authorization: Bearer TOKEN`). Other pages of the port, such
as what a kubelet asks, are served without.
"""

from __future__ import annotations

import hmac
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proctor import __version__
from proctor.domain.errors import BadInputError
from proctor.runtime.messaging.dead_letters import Fault
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.settings import Settings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

#: prometheus_client's own: where processes keep their counts. It must be set before that package is imported.
_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
TOKEN_VARIABLE: Final = "PROCTOR_METRICS_TOKEN"  # noqa: S105, the name of a variable
#: A scraper says what it wants in one packet. Whoever says nothing gives back the thread that waits for it.
MAX_REQUEST_S: Final = 10.0

#: A WSGI application.
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: Further pages of the port by path, e.g. `/livez`. Looked up at each request, so that a page may be added once what it
#: tells of is there.
Pages = Mapping[str, Application]


def _nothing() -> Iterable[Collector]:
    return ()


class Address(NamedTuple):
    """Where metrics are served."""

    host: str
    port: int


@contextmanager
def serving_metrics(
    service: str,
    address: Address,
    settings: Settings,
    token: str = "",
    *,
    collectors: Callable[[], Iterable[Collector]] = _nothing,
    pages: Pages = MappingProxyType({}),
) -> Iterator[Callable[[], bool]]:
    """Record metrics, and serve them, while the block runs. Once a process. Gives whether they are still served.

    The files are in HOME/run/metrics, or in PROMETHEUS_MULTIPROC_DIR where that is set, each worker in a folder of its
    own that is emptied first and removed afterwards.

    Args:
        service: whose metrics.
        address: where they are served.
        settings: the worker's.
        token: what a scraper must show; empty asks for nothing.
        collectors: makes what a scrape reads beside what is recorded; called once prometheus_client may be imported.
        pages: what else the port serves, to whoever asks.

    Raises:
        BadInputError: the address cannot be had.
    """
    base = Path(os.environ.get(_FOLDER_VARIABLE) or settings.home / "run" / "metrics")
    folder = base.absolute() / f"{service}-{address.port}"
    os.environ[_FOLDER_VARIABLE] = str(folder)
    from prometheus_client import CollectorRegistry, start_http_server, values

    if not values.ValueClass._multiprocess:
        raise RuntimeError(f"prometheus_client was imported before {_FOLDER_VARIABLE} was set")
    served = CollectorRegistry()
    try:
        server, thread = start_http_server(address.port, addr=address.host, registry=served)
    except OSError as error:
        raise BadInputError(
            f"metrics cannot be served on {address.host}:{address.port}: {error}; choose another --metrics-port "
            "or --metrics-host"
        ) from error
    # The registry is still empty: nobody saw anything before the token was asked for.
    application = server.get_app()
    assert application is not None
    server.set_app(_beside(_guarded(application, token) if token else application, pages))
    handler: Any = server.RequestHandlerClass
    server.RequestHandlerClass = type("Handler", (handler,), {"timeout": MAX_REQUEST_S})
    # A forked process that outlived this one would keep the port from the worker that comes after.
    os.register_at_fork(after_in_child=server.socket.close)
    try:
        # Only who has the port may empty the folder: it could be that of a worker that runs.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        instruments = metrics.Instruments(CollectorRegistry())
        instruments.begin_at_zero(service, map(str, Fault))
        metrics.record_in(instruments)
        _register(served, service, folder)
        for collector in collectors():
            served.register(collector)
        yield thread.is_alive
    finally:
        metrics.record_in(None)
        server.shutdown()
        server.server_close()
        thread.join()
        shutil.rmtree(folder, ignore_errors=True)


def _guarded(application: Application, token: str) -> Application:
    expected = f"Bearer {token}".encode("latin-1", "replace")

    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        shown = str(environ.get("HTTP_AUTHORIZATION", "")).encode("latin-1", "replace")
        if hmac.compare_digest(shown, expected):
            return application(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
        return [f"the token is missing or wrong: show what {TOKEN_VARIABLE} holds\n".encode()]

    return guarded


def _beside(application: Application, pages: Pages) -> Application:
    def chosen(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return pages.get(str(environ.get("PATH_INFO", "")), application)(environ, start_response)

    return chosen


def _register(served: CollectorRegistry, service: str, folder: Path) -> None:
    from proctor.runtime.metrics.collectors import BuildInfoCollector, ProcessesCollector

    served.register(ProcessesCollector(folder))
    served.register(BuildInfoCollector(__version__, service))
