"""`/v1/trends`, `/v1/benchmarks` and `/v1/costs`: what many audits say together, of those that the caller may see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel

from proctor.domain.submitter import Submitter
from proctor.gateway.desk import DEFAULT_LIMIT
from proctor.gateway.fields import LONGEST_LIST, FieldError
from proctor.gateway.front import Front
from proctor.gateway.http.answers import problems
from proctor.gateway.http.sessions import Caller
from proctor.studies.costs import Costs, read_costs
from proctor.studies.item_health import BenchmarkHealth, BenchmarkHealths
from proctor.studies.trends import Trends, read_trends

_COMMON: Final = problems(400, 401, 403, 422, 429, 503)
#: Of a model's id, a suite's, a benchmark's name, or a digest.
_MAX_NAME_CHARACTERS: Final = 200


class AuditedBenchmark(BaseModel):
    """A benchmark that was asked of late."""

    name: str
    digest: str
    last: str
    """When the last of its audits was decided."""


class BenchmarkList(BaseModel):
    """Benchmarks, the one that was asked last first."""

    benchmarks: list[AuditedBenchmark]


def trend_routes(front: Front) -> APIRouter:
    """The routes over a front."""
    routes = APIRouter(prefix="/v1", tags=["trends"], responses=_COMMON)
    records = front.desk.records
    healths = BenchmarkHealths(records)

    @routes.get("/trends")
    async def trends(caller: Caller, model: str, suite: str | None = None) -> Trends:
        """The Contamination Score over a model's versions, by suite and protocol digest."""
        model_id, suite_id = name_of("model", model), None if suite is None else name_of("suite", suite)
        submitter = seen_by(caller)
        return await front.run(lambda: read_trends(records, model_id, suite_id=suite_id, submitter=submitter))

    @routes.get("/benchmarks")
    async def benchmarks(
        caller: Caller, limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = DEFAULT_LIMIT
    ) -> BenchmarkList:
        """Benchmarks that were asked of late."""
        found = await front.run(lambda: records.measures.benchmarks(limit=limit, submitter=seen_by(caller)))
        return BenchmarkList(benchmarks=[AuditedBenchmark(**one._asdict()) for one in found])

    @routes.get("/benchmarks/{benchmark}/health", responses=problems(404))
    async def health(
        benchmark: str, caller: Caller, limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = DEFAULT_LIMIT
    ) -> BenchmarkHealth:
        """Which items of a benchmark, by its name or digest, the audited models seem to know."""
        named, submitter = name_of("benchmark", benchmark), seen_by(caller)
        return await front.run(
            lambda: healths.read(healths.named(named, submitter=submitter), limit=limit, submitter=submitter)
        )

    @routes.get("/costs")
    async def costs(caller: Caller, month: str | None = None) -> Costs:
        """What the audits of a month used, as YYYY-MM in UTC; of this month where none is named."""
        wanted = month if month is not None else this_month()
        return await front.run(lambda: read_costs(records, wanted, submitter=seen_by(caller)))

    return routes


def seen_by(caller: Submitter) -> str | None:
    """Whose audits a caller sees; None for everyone's."""
    return None if caller.sees_all else caller.name


def this_month() -> str:
    """The month that it is, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m")


def name_of(field: str, text: str) -> str:
    """A name as it stands in a request.

    Raises:
        FieldError: when it can be none.
    """
    if not 0 < len(text) <= _MAX_NAME_CHARACTERS or not text.isprintable():
        raise FieldError(f"{field} has 1 to {_MAX_NAME_CHARACTERS} characters, all of them printable")
    return text
