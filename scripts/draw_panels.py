"""Draw the dashboards' panels from a Prometheus' data: docs/monitoring/*.png.

    python scripts/draw_panels.py --prometheus http://127.0.0.1:9090 --minutes 15

Grafana's own server has no part in it: the files in charts/proctor/dashboards are read, each panel's expressions are
asked of Prometheus' HTTP API, and matplotlib draws what comes back where the panel stands in the grid. So a picture
shows what the queries return, and not how Grafana paints it. A panel without data says so, and the script lists it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

ROOT: Final = Path(__file__).parents[1]
DASHBOARDS: Final = ROOT / "charts" / "proctor" / "dashboards"
PICTURES: Final = ROOT / "docs" / "monitoring"
#: What Grafana puts in the place of its variables: everything.
_EVERYTHING: Final = {"$namespace": ".*", "$model": ".*", "$suite": ".*"}
_COLUMNS: Final = 24
_WIDTH_IN: Final = 17.0
_UNIT_IN: Final = 0.42
_TITLE_IN: Final = 0.6
_POINTS: Final = 240
#: Lines of a legend, and rows of a table, that are drawn.
_MOST: Final = 9
#: Told apart by people who see fewer colours (Okabe and Ito), then paler ones of matplotlib.
_COLOURS: Final = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#B8A500", "#8C564B", "#17BECF",
    "#AEC7E8", "#FFBB78", "#98DF8A", "#FF9896", "#C5B0D5",
)  # fmt: skip
_DAY_S: Final = 86_400.0
_INK: Final = "#333333"
_PALE: Final = "#8a8a8a"


class Series(NamedTuple):
    """One line of a panel."""

    name: str
    labels: Mapping[str, str]
    times: tuple[float, ...]
    """Days since 1970, as matplotlib counts."""
    values: tuple[float, ...]


class Asked(NamedTuple):
    """Whom to ask, of which time."""

    prometheus: httpx.Client
    begin_s: float
    end_s: float
    rate_interval: str

    def series(self, target: Mapping[str, Any]) -> list[Series]:
        """What an expression of a panel comes to over the time.

        Raises:
            httpx.HTTPStatusError: when Prometheus cannot read it.
        """
        expression = expression_of(str(target["expr"]), self.rate_interval)
        step_s = max(1.0, (self.end_s - self.begin_s) / _POINTS)
        sent = {"query": expression, "start": self.begin_s, "end": self.end_s, "step": step_s}
        answer = self.prometheus.post("/api/v1/query_range", data=sent)
        answer.raise_for_status()
        found = []
        for one in answer.json()["data"]["result"]:
            points = [(float(at), float(value)) for at, value in one["values"] if value not in ("NaN", "+Inf", "-Inf")]
            if points:
                times = tuple(at / _DAY_S for at, _ in points)
                name = legend_of(str(target.get("legendFormat", "")), one["metric"])
                found.append(Series(name, one["metric"], times, tuple(value for _, value in points)))
        return found


def expression_of(expression: str, rate_interval: str) -> str:
    """An expression with values in the place of Grafana's variables."""
    for name, value in {**_EVERYTHING, "$__rate_interval": rate_interval}.items():
        expression = expression.replace(name, value)
    return expression


def legend_of(form: str, labels: Mapping[str, str]) -> str:
    """A line's name, as Grafana writes it."""
    if not form:
        return ", ".join(value for name, value in sorted(labels.items()) if not name.startswith("__"))
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), form).strip()


def written(value: float, unit: str) -> str:
    """A number with its unit, in few signs."""
    if unit == "percentunit":
        return f"{value:.1%}"
    if unit == "s":
        if value >= 7_200:
            return f"{value / 3_600:.1f} h"
        if value >= 120:
            return f"{value / 60:.1f} min"
        return f"{value:.3g} s" if value >= 1 or value == 0 else f"{value * 1_000:.3g} ms"
    suffix = {"ops": "/s", "reqps": "/s"}.get(unit, "")
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {sign}{suffix}"
    return f"{value:.3g}{suffix}"


def draw(dashboard: Mapping[str, Any], asked: Asked) -> tuple[Figure, list[str]]:
    """A dashboard's picture, and the titles of the panels that have no data."""
    panels = dashboard["panels"]
    rows = max(panel["gridPos"].get("y", 0) + panel["gridPos"]["h"] for panel in panels)
    height_in = rows * _UNIT_IN + _TITLE_IN
    figure = plt.figure(figsize=(_WIDTH_IN, height_in), facecolor="white")
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (asked.begin_s, asked.end_s))
    figure.text(0.008, 1 - 0.26 / height_in, dashboard["title"], size=15, weight="bold", color=_INK, va="center")
    span = f"{begin:%Y-%m-%d %H:%M} to {end:%H:%M} UTC"
    figure.text(0.992, 1 - 0.26 / height_in, span, size=9, color=_PALE, ha="right", va="center")
    empty = []
    for panel in panels:
        where = panel["gridPos"]
        left, top = where.get("x", 0) / _COLUMNS, _TITLE_IN + where.get("y", 0) * _UNIT_IN
        if panel["type"] == "row":
            y = 1 - (top + 0.6 * _UNIT_IN) / height_in
            figure.text(0.008, y, panel["title"], size=11, weight="bold", color=_PALE, va="center")
            continue
        series = [one for target in panel["targets"] for one in asked.series(target)]
        if not series:
            empty.append(panel["title"])
        room_in = where["h"] * _UNIT_IN
        width = where["w"] / _COLUMNS
        figure.text(left + 0.008, 1 - (top + 0.17) / height_in, panel["title"], size=9.5, color=_INK, va="center")
        _draw_panel(figure, panel, series, (left, top, width, room_in), height_in)
        if panel["type"] == "timeseries":
            # One time for all panels, also where data began late.
            figure.axes[-1].set_xlim(asked.begin_s / _DAY_S, asked.end_s / _DAY_S)
    return figure, empty


def _draw_panel(
    figure: Figure,
    panel: Mapping[str, Any],
    series: Sequence[Series],
    where: tuple[float, float, float, float],
    height_in: float,
) -> None:
    left, top, width, room_in = where
    unit = panel["fieldConfig"]["defaults"]["unit"]
    kind = panel["type"]
    below_in = 0.75 if kind == "timeseries" else 0.15
    margin = 0.034 if kind == "timeseries" else 0.01
    bottom = 1 - (top + room_in - below_in) / height_in
    axes = figure.add_axes((left + margin, bottom, width - margin - 0.01, (room_in - below_in - 0.36) / height_in))
    if not series:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no data", ha="center", va="center", color=_PALE, transform=axes.transAxes)
    elif kind == "stat":
        _number(axes, series, unit)
    elif kind == "bargauge":
        _bars(axes, series, unit)
    elif kind == "table":
        _table(axes, series, unit)
    else:
        custom = panel["fieldConfig"]["defaults"].get("custom", {})
        _lines(axes, series, unit, stacked=custom.get("stacking", {}).get("mode") == "normal")


def _lines(axes: Axes, series: Sequence[Series], unit: str, *, stacked: bool) -> None:
    shown = sorted(series, key=lambda one: one.name)
    colours = [_COLOURS[number % len(_COLOURS)] for number in range(len(shown))]
    if stacked:
        times = sorted({at for one in shown for at in one.times})
        at_times = [dict(zip(one.times, one.values, strict=True)) for one in shown]
        heights = [[values.get(at, 0.0) for at in times] for values in at_times]
        axes.stackplot(times, *heights, colors=colours, labels=[one.name for one in shown], alpha=0.85, linewidth=0)
        axes.set_ylim(bottom=0, top=max(map(sum, zip(*heights, strict=True)), default=0.0) * 1.08 or 1)
    else:
        for one, colour in zip(shown, colours, strict=True):
            alone = "o" if len(one.times) == 1 else None
            axes.plot(one.times, one.values, color=colour, linewidth=1.3, marker=alone, markersize=3, label=one.name)
        low = min(min(one.values) for one in shown)
        axes.axhline(0, color="#dddddd", linewidth=0.8, zorder=0)
        if low >= 0:
            axes.set_ylim(bottom=0, top=max(max(one.values) for one in shown) * 1.08 or 1)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=7, colors=_PALE, length=2)
    axes.grid(color="#eeeeee", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    left_out = len(names) - _MOST
    names = names[:_MOST]
    if left_out > 0:
        names[-1] += f"   and {left_out} more"
    axes.legend(
        handles[:_MOST], names, loc="upper left", bbox_to_anchor=(-0.06, -0.11), ncols=3, fontsize=6.5, frameon=False,
        labelcolor=_INK, handlelength=1.2, columnspacing=1.0, borderaxespad=0.2,
    )  # fmt: skip


def _number(axes: Axes, series: Sequence[Series], unit: str) -> None:
    one = series[0]
    axes.set_axis_off()
    axes.fill_between(one.times, one.values, color=_COLOURS[0], alpha=0.12, linewidth=0)
    axes.plot(one.times, one.values, color=_COLOURS[0], linewidth=1, alpha=0.5)
    axes.set_ylim(bottom=min(0.0, *one.values), top=max(*one.values, 1e-9) * 2.2)
    said = written(one.values[-1], unit)
    axes.text(0.5, 0.62, said, size=20, ha="center", va="center", color=_INK, transform=axes.transAxes)


def _bars(axes: Axes, series: Sequence[Series], unit: str) -> None:
    shown = sorted(series, key=lambda one: one.values[-1])[-_MOST:]
    axes.barh([one.name for one in shown], [one.values[-1] for one in shown], color=_COLOURS[0], height=0.55)
    axes.margins(x=0.2)
    widest = max((one.values[-1] for one in shown), default=0.0)
    for row, one in enumerate(shown):
        axes.text(one.values[-1] + widest * 0.01, row, f" {written(one.values[-1], unit)}", va="center", size=8)
    axes.tick_params(labelsize=7.5, colors=_INK, length=0)
    axes.tick_params(axis="y", pad=-4, direction="in")
    axes.set_xticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    # Names above their bars: they may be long.
    axes.set_yticklabels([])
    for row, one in enumerate(shown):
        axes.text(0, row + 0.32, one.name, size=7.5, color=_INK, va="bottom")
    axes.set_ylim(-0.6, len(shown) - 0.1)


def _table(axes: Axes, series: Sequence[Series], unit: str) -> None:
    axes.set_axis_off()
    names = [name for name in sorted({name for one in series for name in one.labels}) if not name.startswith("__")]
    ordered = sorted(series, key=lambda one: [one.labels.get(name, "") for name in reversed(names)])
    cells = [
        [*(one.labels.get(name, "") for name in names), written(one.values[-1], unit)] for one in ordered[: 2 * _MOST]
    ]
    drawn = axes.table(cells, colLabels=[*names, "value"], loc="upper left", cellLoc="left", edges="horizontal")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7)
    for cell in drawn.get_celld().values():
        cell.set_edgecolor("#e0e0e0")
        cell.set_height(1 / (2 * _MOST + 2))


def main(arguments: Sequence[str]) -> int:
    """Draw each dashboard; exit with 1 where a panel that is to have data has none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090", help="address of its HTTP API")
    parser.add_argument("--minutes", type=float, default=15.0, help="time that is drawn, up to now")
    parser.add_argument("--rate-interval", default="1m", help="what stands for $__rate_interval")
    parser.add_argument("--output", type=Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument("--may-be-empty", action="append", default=[], help="title of a panel that may have no data")
    given = parser.parse_args(arguments)
    end_s = time.time()
    given.output.mkdir(parents=True, exist_ok=True)
    missing = []
    with httpx.Client(base_url=given.prometheus, timeout=60) as prometheus:
        asked = Asked(prometheus, end_s - given.minutes * 60, end_s, given.rate_interval)
        for path in sorted(DASHBOARDS.glob("*.json")):
            figure, empty = draw(json.loads(path.read_text("utf-8")), asked)
            picture = given.output / f"{path.stem}.png"
            figure.savefig(picture, dpi=80)
            plt.close(figure)
            print(f"wrote {picture}")
            missing += [f"{path.stem}: {title}" for title in empty if title not in given.may_be_empty]
    for title in missing:
        print(f"no data: {title}", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
