"""Write Grafana's dashboards of the chart: charts/proctor/dashboards/*.json.

    python scripts/write_dashboards.py            # writes them
    python scripts/write_dashboards.py --check    # says whether they are as this script writes them

Built with grafana-foundation-sdk, so that every field is one of Grafana's schema. A test holds the files to this
script, and every metric in a query to those that Proctor declares, or to `FOREIGN`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from grafana_foundation_sdk.builders import (
    bargauge,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import (
    common as common_builders,
)
from grafana_foundation_sdk.builders import (
    dashboard as dashboards,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FOLDER: Final = Path(__file__).parents[1] / "charts" / "proctor" / "dashboards"
#: Metrics of others that panels and rules ask for: Triton's own. The last three are there where it has a GPU.
FOREIGN: Final = (
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_pending_request_count",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_cpu_utilization",
    "nv_gpu_utilization",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_memory_total_bytes",
)
_SOURCE: Final = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH: Final = 24
_HEIGHT: Final = 8
_FILTER: Final = 'namespace=~"$namespace"'


class Query(NamedTuple):
    """One expression of a panel. `%` in it stands for the dashboard's own selection of series."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """One panel, in the words that this script needs."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False


class Section(NamedTuple):
    """A row of panels."""

    title: str
    panels: tuple[Panel, ...]


class Page(NamedTuple):
    """One dashboard."""

    name: str
    title: str
    description: str
    sections: tuple[Section, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """Further variables, each with the query of its values."""


def _line(title: str, description: str, unit: str, *queries: tuple[str, str], **how: Any) -> Panel:
    return Panel(title, description, unit, tuple(Query(*query) for query in queries), **how)


def _number(title: str, description: str, unit: str, expression: str) -> Panel:
    return Panel(title, description, unit, (Query(expression, title),), kind="stat", width=4)


AUDITS: Final = Page(
    "audits",
    "Proctor: audits",
    "What is audited, how far it is, what was decided, and what goes wrong on the way.",
    (
        Section(
            "Now",
            (
                _number(
                    "Audits under way",
                    "Audits that have not ended. One that failed has: it waits for a person.",
                    "short",
                    'sum(max by (namespace, state) (proctor_audits{%, state!~"decided|failed|cancelled"}))',
                ),
                _number(
                    "Audits that failed",
                    "They go on where they stopped once they are resumed.",
                    "short",
                    'sum(max by (namespace) (proctor_audits{%, state="failed"}))',
                ),
                _number(
                    "Oldest unfinished",
                    "Time since the oldest audit that is under way, and not paused, was submitted.",
                    "s",
                    "max(proctor_oldest_unfinished_seconds{%})",
                ),
                _number(
                    "Decisions in 24 h",
                    "Decisions that were put on record.",
                    "short",
                    "sum(increase(proctor_decisions_total{%}[24h]))",
                ),
                _number(
                    "Trials answered a second",
                    "Over all stages; each once, whatever was delivered twice.",
                    "ops",
                    'sum(rate(proctor_trials_total{%, state="answered"}[$__rate_interval]))',
                ),
                _number(
                    "Trials given up in 24 h",
                    "Dead-lettered with their shard, after its last attempt.",
                    "short",
                    "sum(increase(proctor_dead_lettered_trials_total{%}[24h]))",
                ),
            ),
        ),
        Section(
            "Work",
            (
                _line(
                    "Audits by state",
                    "Audits under way by where they are. Every router tells the same number.",
                    "short",
                    (
                        "sum by (state) (max by (namespace, state) "
                        '(proctor_audits{%, state!~"decided|failed|cancelled"}))',
                        "{{state}}",
                    ),
                    stacked=True,
                ),
                _line(
                    "Trials answered",
                    "Trials a second by stage and arm.",
                    "ops",
                    (
                        'sum by (stage, arm) (rate(proctor_trials_total{%, state="answered"}[$__rate_interval]))',
                        "{{stage}} {{arm}}",
                    ),
                    stacked=True,
                ),
                _line(
                    "Work that waits",
                    "What waits for each service or is in its hands: what its workers are scaled by.",
                    "short",
                    ("sum by (service) (max by (namespace, service) (proctor_scaling_work{%}))", "{{service}}"),
                ),
                _line(
                    "Shards",
                    "Shards of the stages under way; what is not planned yet is estimated.",
                    "short",
                    ("sum by (state) (max by (namespace, state) (proctor_shards{%}))", "{{state}}"),
                    stacked=True,
                ),
                _line(
                    "Oldest unfinished by state",
                    "Time since the oldest audit in each state was submitted.",
                    "s",
                    ("max by (state) (proctor_oldest_unfinished_seconds{%})", "{{state}}"),
                ),
                _line(
                    "Tokens",
                    "Tokens of answered trials a second, as endpoints report them.",
                    "short",
                    ("sum by (stage, kind) (rate(proctor_tokens_total{%}[$__rate_interval]))", "{{stage}} {{kind}}"),
                    stacked=True,
                ),
            ),
        ),
        Section(
            "What came of it",
            (
                _line(
                    "Decisions",
                    "Decisions an hour by outcome.",
                    "short",
                    ("sum by (outcome) (increase(proctor_decisions_total{%}[1h]))", "{{outcome}}"),
                    stacked=True,
                ),
                _line(
                    "Writes to the registry",
                    "Writes an hour by how they ended, after the last try.",
                    "short",
                    ("sum by (outcome) (increase(proctor_registry_writes_total{%}[1h]))", "{{outcome}}"),
                ),
                _line(
                    "Webhooks",
                    "Deliveries an hour by what became of them.",
                    "short",
                    ("sum by (outcome) (increase(proctor_webhook_deliveries_total{%}[1h]))", "{{outcome}}"),
                ),
            ),
        ),
        Section(
            "What goes wrong",
            (
                _line(
                    "Shards asked again",
                    "Shards an hour that were queued again, by cause.",
                    "short",
                    ("sum by (cause) (increase(proctor_shard_redeliveries_total{%}[1h]))", "{{cause}}"),
                ),
                _line(
                    "Duplicates suppressed",
                    "Answers an hour that the ledger had already. They changed nothing.",
                    "short",
                    ("sum(increase(proctor_duplicates_suppressed_total{%}[1h]))", "duplicates"),
                ),
                _line(
                    "Given up and put aside",
                    "Trials that were dead-lettered, and queue entries that nobody can handle, an hour.",
                    "short",
                    ("sum(increase(proctor_dead_lettered_trials_total{%}[1h]))", "trials"),
                    ("sum by (cause) (increase(proctor_dead_letters_total{%}[1h]))", "entries, {{cause}}"),
                ),
            ),
        ),
        Section(
            "Services",
            (
                _line(
                    "Messages",
                    "Messages a second whose task ended, by task.",
                    "ops",
                    (
                        'sum by (task) (rate(proctor_messages_total{%, outcome="done"}[$__rate_interval]))',
                        "{{task}}",
                    ),
                ),
                _line(
                    "Tasks that failed",
                    "Messages an hour whose task raised, or that a later version's worker is to take.",
                    "short",
                    ('sum by (outcome) (increase(proctor_messages_total{%, outcome!="done"}[1h]))', "{{outcome}}"),
                ),
                _line(
                    "Time of a task, 95th percentile",
                    "By task.",
                    "s",
                    (
                        "histogram_quantile(0.95, sum by (task, le) "
                        "(rate(proctor_message_duration_seconds_bucket{%}[10m])))",
                        "{{task}}",
                    ),
                ),
                _line(
                    "Requests over HTTP",
                    "Requests a second that the gateway answered, by class.",
                    "reqps",
                    ("sum by (code) (rate(proctor_http_requests_total{%}[$__rate_interval]))", "{{code}}"),
                    stacked=True,
                ),
                _line(
                    "Time to an answer, 95th percentile",
                    "Of the gateway's HTTP, by route.",
                    "s",
                    (
                        "histogram_quantile(0.95, sum by (route, le) "
                        "(rate(proctor_http_request_duration_seconds_bucket{%}[10m])))",
                        "{{route}}",
                    ),
                ),
                _line(
                    "Workers",
                    "Processes that are scraped, by service.",
                    "short",
                    ("count by (worker) (proctor_build_info{%})", "{{worker}}"),
                ),
            ),
        ),
    ),
)

SERVING: Final = Page(
    "serving",
    "Proctor: GPU and queue",
    "How models are asked: what waits, how long shards take, and what Triton says of itself.",
    (
        Section(
            "Inference workers",
            (
                _line(
                    "Work and workers",
                    "Shards that wait or are in hand, and the inference workers that are there for them.",
                    "short",
                    ('sum(max by (namespace) (proctor_scaling_work{%, service="inference"}))', "work"),
                    ('count(proctor_build_info{%, worker="inference"})', "workers"),
                ),
                _line(
                    "In flight",
                    "Shards that workers ask a model now, and the messages that brought them.",
                    "short",
                    ("sum by (backend) (proctor_shards_in_flight{%})", "shards, {{backend}}"),
                    ("sum by (backend) (proctor_packs_in_flight{%})", "messages, {{backend}}"),
                ),
                _line(
                    "Time of a shard by stage",
                    "Median and 95th percentile of attempts that were answered.",
                    "s",
                    (
                        "histogram_quantile(0.5, sum by (stage, le) "
                        '(rate(proctor_shard_duration_seconds_bucket{%, outcome="answered"}[10m])))',
                        "{{stage}} median",
                    ),
                    (
                        "histogram_quantile(0.95, sum by (stage, le) "
                        '(rate(proctor_shard_duration_seconds_bucket{%, outcome="answered"}[10m])))',
                        "{{stage}} 95 %",
                    ),
                ),
                _line(
                    "Attempts at shards",
                    "Attempts a second by backend and outcome.",
                    "ops",
                    (
                        "sum by (backend, outcome) (rate(proctor_shard_duration_seconds_count{%}[$__rate_interval]))",
                        "{{backend}} {{outcome}}",
                    ),
                    stacked=True,
                ),
                _line(
                    "Endpoints away",
                    "Endpoints that do not answer, and are asked a probing shard now and then.",
                    "short",
                    ("max(proctor_pools_away{%})", "away"),
                ),
                _line(
                    "Tokens written",
                    "Tokens that models wrote a second, by stage.",
                    "short",
                    (
                        'sum by (stage) (rate(proctor_tokens_total{%, kind="output"}[$__rate_interval]))',
                        "{{stage}}",
                    ),
                    stacked=True,
                ),
            ),
        ),
        Section(
            "Triton",
            (
                _line(
                    "Time in the queue",
                    "Mean time that a request waited for its model: what Triton pods are scaled by.",
                    "s",
                    (
                        "sum by (model) (rate(nv_inference_queue_duration_us{%}[$__rate_interval])) / 1e6 / "
                        "(sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                _line(
                    "Time of computing",
                    "Mean time that a model took for a request.",
                    "s",
                    (
                        "sum by (model) (rate(nv_inference_compute_infer_duration_us{%}[$__rate_interval])) / 1e6 / "
                        "(sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                _line(
                    "Requests",
                    "Requests a second that ended well, and that failed.",
                    "reqps",
                    ("sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval]))", "{{model}}"),
                    (
                        "sum by (model) (rate(nv_inference_request_failure{%}[$__rate_interval])) > 0",
                        "{{model}} failed",
                    ),
                ),
                _line(
                    "Requests that wait",
                    "Requests that no model has taken yet.",
                    "short",
                    ("sum by (model) (nv_inference_pending_request_count{%})", "{{model}}"),
                ),
                _line(
                    "Requests a batch",
                    "Mean size of the batches that models were given.",
                    "short",
                    (
                        "sum by (model) (rate(nv_inference_count{%}[$__rate_interval])) / "
                        "(sum by (model) (rate(nv_inference_exec_count{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                _line(
                    "Processors of the servers",
                    "How much of their machine's processors is used, whoever uses them.",
                    "percentunit",
                    ("avg by (instance) (nv_cpu_utilization{%})", "{{instance}}"),
                ),
            ),
        ),
        Section(
            "GPUs",
            (
                _line(
                    "GPU utilisation",
                    "By server and GPU, as Triton reads it. Empty where it runs on processors.",
                    "percentunit",
                    ("avg by (instance, gpu_uuid) (nv_gpu_utilization{%})", "{{instance}} {{gpu_uuid}}"),
                    width=12,
                ),
                _line(
                    "GPU memory",
                    "Share that is used, by server and GPU. Empty where it runs on processors.",
                    "percentunit",
                    (
                        "sum by (instance, gpu_uuid) (nv_gpu_memory_used_bytes{%}) / "
                        "sum by (instance, gpu_uuid) (nv_gpu_memory_total_bytes{%})",
                        "{{instance}} {{gpu_uuid}}",
                    ),
                    width=12,
                ),
            ),
        ),
    ),
)

_SCORE: Final = "proctor_contamination_score{%"
_OF: Final = "{{model}} on {{suite}}"
CONTAMINATION: Final = Page(
    "contamination",
    "Proctor: contamination trends",
    "The Contamination Score over the versions of each model, measured by the same suite, and what the gate decided.",
    (
        Section(
            "Newest versions",
            (
                Panel(
                    "Contamination Score of the newest version",
                    "The highest ten. The gate decides by the interval, and not by this point.",
                    "percentunit",
                    (
                        Query(
                            f'topk(10, max by (model, suite) ({_SCORE}, audited="newest", bound="estimate"}}))',
                            _OF,
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                ),
                Panel(
                    "Scores and their intervals",
                    "Of the newest version, and of the one before it that was measured alike.",
                    "percentunit",
                    (Query(f"max by (model, suite, audited, bound) ({_SCORE}}})", ""),),
                    kind="table",
                    width=12,
                ),
            ),
        ),
        Section(
            "Over versions",
            (
                _line(
                    "Contamination Score",
                    "It steps when another version of the model is decided on.",
                    "percentunit",
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="estimate"}})', _OF),
                    width=12,
                ),
                _line(
                    "Interval of the newest version",
                    "Lower and upper bound of the Contamination Score.",
                    "percentunit",
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="low"}})', f"{_OF}, low"),
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="high"}})', f"{_OF}, high"),
                    width=12,
                ),
                _line(
                    "Rise from the version before",
                    "Difference of the two estimates, which were measured alike.",
                    "percentunit",
                    ('max by (model, suite) (proctor:contamination_rise{%, model=~"$model", suite=~"$suite"})', _OF),
                    width=12,
                ),
                _line(
                    "Rise, lower bound",
                    "Above 0 the rise is more than chance: the alert ProctorContaminationRises looks at it.",
                    "percentunit",
                    (
                        'max by (model, suite) (proctor:contamination_rise:low{%, model=~"$model", suite=~"$suite"})',
                        _OF,
                    ),
                    width=12,
                ),
            ),
        ),
        Section(
            "The gate",
            (
                _line(
                    "Decisions",
                    "Decisions a day by outcome.",
                    "short",
                    ("sum by (outcome) (increase(proctor_decisions_total{%}[24h]))", "{{outcome}}"),
                    stacked=True,
                    width=12,
                ),
                _line(
                    "Share that is blocked",
                    "Of the decisions of a day.",
                    "percentunit",
                    (
                        'sum(increase(proctor_decisions_total{%, outcome="block"}[24h])) / '
                        "(sum(increase(proctor_decisions_total{%}[24h])) > 0)",
                        "blocked",
                    ),
                    width=12,
                ),
            ),
        ),
    ),
    (
        ("model", "label_values(proctor_contamination_score, model)"),
        ("suite", "label_values(proctor_contamination_score, suite)"),
    ),
)
PAGES: Final = (AUDITS, SERVING, CONTAMINATION)


def expression_of(page: Page, expression: str) -> str:
    """An expression with the dashboard's selection in it."""
    selected = _FILTER
    if page is CONTAMINATION:
        expression = expression.replace(_SCORE, f'{_SCORE}, model=~"$model", suite=~"$suite"')
    return expression.replace("{%", "{" + selected)


def built(page: Page) -> dict[str, Any]:
    """A dashboard as Grafana reads it."""
    made = (
        dashboards.Dashboard(page.title)
        .uid(f"proctor-{page.name}")
        .description(page.description)
        .tags(["proctor"])
        .editable()
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboards.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    values = (("namespace", "label_values(proctor_build_info, namespace)"), *page.variables)
    for name, query in values:
        variable = dashboards.QueryVariable(name).label(name.capitalize()).datasource(_SOURCE).query(query)
        # `.*` and not a list of all: where one Prometheus has one Proctor there is no namespace.
        everything = dashboard.VariableOption(selected=True, text="All", value="$__all")
        variable = variable.multi(True).include_all(True).all_value(".*").current(everything)
        made = made.with_variable(variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED))
    top, number = 0, 0
    for section in page.sections:
        row = dashboards.Row(section.title).grid_pos(dashboard.GridPos(h=1, w=_WIDTH, x=0, y=top))
        made, top, left = made.with_row(row), top + 1, 0
        height = max(_height(panel) for panel in section.panels)
        for panel in section.panels:
            if left + panel.width > _WIDTH:
                left, top = 0, top + height
            number += 1
            where = dashboard.GridPos(h=height, w=panel.width, x=left, y=top)
            made = made.with_panel(_panel(page, panel).id(number).grid_pos(where))
            left += panel.width
        top += height
    plain: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    return plain


def _height(panel: Panel) -> int:
    return 4 if panel.kind == "stat" else _HEIGHT


def _panel(page: Page, panel: Panel) -> Any:
    kinds = {"timeseries": _timeseries, "stat": _stat, "bargauge": _bars, "table": _table}
    made = kinds[panel.kind](panel)
    made = made.title(panel.title).description(panel.description).datasource(_SOURCE).unit(panel.unit)
    for letter, query in zip("ABCDEF", panel.queries, strict=False):
        asked = prometheus.Dataquery().ref_id(letter).expr(expression_of(page, query.expression)).datasource(_SOURCE)
        asked = asked.legend_format(query.legend) if query.legend else asked
        if panel.kind == "table":
            asked = asked.instant().format(PromQueryFormat.TABLE)
        elif panel.kind == "bargauge":
            asked = asked.instant()
        else:
            asked = asked.range()
        made = made.with_target(asked)
    return made


def _timeseries(panel: Panel) -> Any:
    legend = (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    made = timeseries.Panel().legend(legend).tooltip(tooltip).line_width(1).fill_opacity(10).axis_soft_min(0)
    if panel.stacked:
        made = made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL)).fill_opacity(30)
    return made


def _last() -> Any:
    return common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _stat(panel: Panel) -> Any:
    del panel
    return stat.Panel().reduce_options(_last()).graph_mode(common.BigValueGraphMode.AREA)


def _bars(panel: Panel) -> Any:
    del panel
    return bargauge.Panel().reduce_options(_last()).orientation(common.VizOrientation.HORIZONTAL).min(0)


def _table(panel: Panel) -> Any:
    """One row a model, suite and version; the bounds side by side."""
    del panel
    hide = {"excludeByName": {"Time": True}, "renameByName": {"Value": "score"}}
    return (
        table.Panel()
        .show_header(True)
        .with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=hide))
    )


def text_of(page: Page) -> str:
    """The file of a dashboard."""
    return json.dumps(built(page), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file differs")
    check = parser.parse_args(arguments).check
    differs = False
    for page in PAGES:
        path, text = FOLDER / f"{page.name}.json", text_of(page)
        if check:
            if not path.is_file() or path.read_text("utf-8") != text:
                print(f"{path} is not what {Path(__file__).name} writes: run it", file=sys.stderr)
                differs = True
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path}")
    return int(differs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
