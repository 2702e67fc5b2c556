"""`/benchmarks`: which items of a benchmark every model seems to know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.domain.submitter import Submitter
from proctor.gateway.http.trends import name_of, seen_by
from proctor.gateway.pages.charts import item_chart
from proctor.gateway.pages.shell import Shell
from proctor.runtime.rotations import rotations_in
from proctor.studies.item_health import BenchmarkHealth, BenchmarkHealths

_BENCHMARKS: Final = 50
#: Items that a page lists, and those of them that it draws.
_ITEMS: Final = 100
_DRAWN: Final = 20


def benchmark_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes, records = shell.routes(), shell.front.desk.records
    healths = BenchmarkHealths(records)

    @routes.get("/benchmarks")
    async def listed(request: Request, caller: Submitter = shell.caller) -> Response:
        submitter = seen_by(caller)
        found = await shell.run(lambda: records.measures.benchmarks(limit=_BENCHMARKS, submitter=submitter))
        # The operator's own files: whoever sees their own audits alone is not told of them.
        own = (
            [] if submitter is not None else await shell.run(lambda: rotations_in(shell.front.desk.settings.benchmarks))
        )
        today = datetime.now(UTC).date()
        return shell.page(
            request, caller, "benchmarks.html.jinja", title="Benchmarks", benchmarks=found, rotations=own, today=today
        )

    @routes.get("/benchmarks/{benchmark}")
    async def health(request: Request, benchmark: str, caller: Submitter = shell.caller) -> Response:
        named, submitter = name_of("benchmark", benchmark), seen_by(caller)

        def read() -> BenchmarkHealth:
            return healths.read(healths.named(named, submitter=submitter), limit=_ITEMS, submitter=submitter)

        found = await shell.run(read)
        chart = item_chart("items", found.listed[:_DRAWN]) if found.listed else None
        title = f"Health of {found.benchmark_name}"
        return shell.page(request, caller, "benchmark.html.jinja", title=title, found=found, chart=chart)

    return routes
