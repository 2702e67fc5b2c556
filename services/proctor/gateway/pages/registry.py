"""Which pages there are. Another one is one more line here, and its module beside the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fastapi import APIRouter

from proctor.gateway.front import Front
from proctor.gateway.pages.assets import asset_routes
from proctor.gateway.pages.audit import one_audit_pages
from proctor.gateway.pages.audits import audit_pages
from proctor.gateway.pages.benchmarks import benchmark_pages
from proctor.gateway.pages.costs import cost_pages
from proctor.gateway.pages.login import login_pages
from proctor.gateway.pages.record import record_pages
from proctor.gateway.pages.review import review_pages
from proctor.gateway.pages.shell import Entry, Shell
from proctor.gateway.pages.trends import trend_pages


class Pages(NamedTuple):
    """A group of pages, and where the navigation leads to it."""

    make: Callable[[Shell], APIRouter]
    entry: Entry | None = None


#: In the order of the navigation.
PAGES: Final = (
    Pages(audit_pages, Entry("/audits", "Audits")),
    Pages(one_audit_pages),
    Pages(review_pages, Entry("/review", "Review")),
    Pages(trend_pages, Entry("/trends", "Trends")),
    Pages(benchmark_pages, Entry("/benchmarks", "Benchmarks")),
    Pages(cost_pages, Entry("/costs", "Costs")),
    Pages(record_pages, Entry("/record", "Record")),
    Pages(login_pages),
)


def page_routes(front: Front) -> APIRouter:
    """All pages over a front, with what they load."""
    shell = Shell(front, [group.entry for group in PAGES if group.entry is not None])
    routes = APIRouter()
    routes.include_router(asset_routes())
    for group in PAGES:
        routes.include_router(group.make(shell))
    return routes
