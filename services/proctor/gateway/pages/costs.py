"""`/costs`: what a month's audits cost."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.domain.submitter import Submitter
from proctor.gateway.http.trends import seen_by, this_month
from proctor.gateway.pages.charts import month_chart
from proctor.gateway.pages.shell import Shell
from proctor.studies.costs import read_costs


def cost_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes, records = shell.routes(), shell.front.desk.records

    @routes.get("/costs")
    async def costs(request: Request, caller: Submitter = shell.caller) -> Response:
        month, submitter = request.query_params.get("month", "").strip() or this_month(), seen_by(caller)
        found = await shell.run(lambda: read_costs(records, month, submitter=submitter))
        chart = month_chart("months", found.months) if found.months else None
        groups = (("Suite", found.by_suite), ("Model", found.by_model), ("Submitter", found.by_submitter))
        title = f"Costs of {found.month}"
        return shell.page(request, caller, "costs.html.jinja", title=title, found=found, chart=chart, groups=groups)

    return routes
