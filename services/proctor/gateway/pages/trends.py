"""`/trends`: the Contamination Score over the versions of a model."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.domain.submitter import Submitter
from proctor.gateway.http.trends import name_of, seen_by
from proctor.gateway.pages.charts import trend_chart
from proctor.gateway.pages.shell import Shell
from proctor.studies.trends import read_trends

#: Models that are named where none was asked for.
_MODELS: Final = 50


def trend_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes, records = shell.routes(), shell.front.desk.records

    @routes.get("/trends")
    async def trends(request: Request, caller: Submitter = shell.caller) -> Response:
        submitter, asked = seen_by(caller), request.query_params.get("model", "").strip()
        if not asked:
            models = await shell.run(lambda: records.measures.models(limit=_MODELS, submitter=submitter))
            return shell.page(request, caller, "trends.html.jinja", title="Trends", models=models)
        model_id = name_of("model", asked)
        found = await shell.run(lambda: read_trends(records, model_id, submitter=submitter))
        charts = [trend_chart(f"line-{number}", line) for number, line in enumerate(found.series, start=1)]
        lines = list(zip(found.series, charts, strict=True))
        return shell.page(request, caller, "trend.html.jinja", title=f"Trends of {model_id}", found=found, lines=lines)

    return routes
