"""Dashboards as Grafana reads them, built with grafana-foundation-sdk: every field is one of its schema."""

from __future__ import annotations

import json
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.page import Page, Panel

_SOURCE: Final = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH: Final = 24
_HEIGHT: Final = 8
_FILTER: Final = 'namespace=~"$namespace"'
_SCORE: Final = "proctor_contamination_score{%"


def text_of(page: Page) -> str:
    """The file of a dashboard."""
    return json.dumps(built(page), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def expression_of(page: Page, expression: str) -> str:
    """An expression with the dashboard's selection in it."""
    if page.of_score:
        expression = expression.replace(_SCORE, f"{_SCORE}, {page.of_score}")
    return expression.replace("{%", "{" + _FILTER)


def built(page: Page) -> dict[str, Any]:
    """A dashboard as Grafana reads it."""
    made = (
        builders.Dashboard(page.title)
        .uid(f"proctor-{page.name}")
        .description(page.description)
        .tags(["proctor"])
        .editable()
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    values = (("namespace", "label_values(proctor_build_info, namespace)"), *page.variables)
    for name, query in values:
        variable = builders.QueryVariable(name).label(name.capitalize()).datasource(_SOURCE).query(query)
        # `.*` and not a list of all: where one Prometheus has one Proctor there is no namespace.
        everything = dashboard.VariableOption(selected=True, text="All", value="$__all")
        variable = variable.multi(True).include_all(True).all_value(".*").current(everything)
        made = made.with_variable(variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED))
    top, number = 0, 0
    for section in page.sections:
        row = builders.Row(section.title).grid_pos(dashboard.GridPos(h=1, w=_WIDTH, x=0, y=top))
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
