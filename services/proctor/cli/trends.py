"""`proctor trends`: the Contamination Score over the versions of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.opened_records import opened_records
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import clean, print_json, say, table

if TYPE_CHECKING:
    from proctor.domain.measure import Bounded
    from proctor.studies.trends import Series, TrendPoint, Trends


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--suite", "suite_id", metavar="ID", help="The audits of this suite alone, by its audit_suite_id.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draws behind p.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Draw the line as SVG. Of several lines the others go to FILE-2.svg and so on. Needs proctor[plots].",
)
@home_option
@format_option
def trends(model: str, suite_id: str | None, seed: int, plot: Path | None, home: Path, output: str) -> None:
    """Show the Contamination Score of MODEL over its versions, with its floor, and where its level changed.

    MODEL is the model id of the suites. A line joins the audits of one suite with one protocol digest; audits with
    another digest measure something else, and are a line of their own. A version is the digest of its weights; the
    newest audit of it counts. The floor is the audit that `proctor baseline` recorded: a score up to its upper bound is
    no news. From 5 versions on, a change of level is looked for (docs/trends.md).

    \b
    Examples:
      proctor trends my-org/my-model
      proctor trends my-org/my-model --suite gsm8k-my-model --plot trend.svg

    JSON keys: model_id, series[] (suite_id, protocol_digest, benchmark_name, level, points[] (audit_id, model_digest,
    registry_version, decided_at, verdict, outcome, score, inflation, n_items, above_floor), versions_not_shown, floor,
    change (before, after, number, shift, p_value, holm_p, noted, shared_items), note), series_not_shown,
    audits_not_shown, tested. Scores and inflations are {value, low, high}.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.studies.trends import read_trends

    with opened_records(home_settings(home)) as records:
        found = read_trends(records, model, suite_id=suite_id, seed=seed)
    if plot is not None:
        _draw(found, plot)
    if output == "json":
        print_json(found.plain())
    else:
        _print(found)


def _draw(found: Trends, plot: Path) -> None:
    from proctor.cli.drawing import write_charts
    from proctor.studies.trend_plots import figures

    drawn = figures(found)
    names = [plot.name, *(f"{plot.stem}-{number}{plot.suffix}" for number in range(2, len(drawn) + 1))]
    write_charts(dict(zip(names, drawn, strict=False)), plot.parent)


def _print(found: Trends) -> None:
    if not found.series:
        say(
            f"No decided audit of {found.model_id} has figures on record. `proctor records measure` takes in those of "
            "before they were kept."
        )
        return
    if len(found.series) > 1:
        say(f"{len(found.series)} lines, which cannot be compared with each other: their suites or protocols differ.")
    for one in found.series:
        say("")
        _print_series(one)
    if found.series_not_shown:
        say(f"\n{found.series_not_shown} more lines were audited longer ago; --suite shows those of one suite.")
    if found.audits_not_shown:
        say("\nOlder audits of this model are not looked at.")


def _print_series(one: Series) -> None:
    click.secho(f"{clean(one.suite_id)} ({clean(one.benchmark_name)}), protocol {one.protocol_digest[:19]}", bold=True)
    if one.versions_not_shown:
        say(f"  {one.versions_not_shown} earlier versions are not shown.")
    headings = ("version", "decided", "decision", "items", "Contamination Score", "inflation in points", "")
    say(table(headings, [_row(point) for point in one.points]))
    if one.floor is not None:
        floor = one.floor
        named = f"{floor.registered_name} version {floor.registered_version}"
        alias = "" if floor.alias is None else f", then @{floor.alias}"
        say(f"floor: {named}{alias}: {_figure(floor.score, 3)}; a score up to {floor.line:.3f} is no news")
    say(one.note)


def _row(point: TrendPoint) -> tuple[str, ...]:
    mark = "invalid evidence" if not point.usable else "above the floor" if point.above_floor else ""
    return (
        point.label,
        point.decided_at[:16].replace("T", " "),
        point.outcome.value,
        str(point.n_items),
        _figure(point.score, 3),
        _figure(point.inflation, 1),
        mark,
    )


def _figure(figure: Bounded, digits: int) -> str:
    value, low, high = ("–" if one is None else f"{one:.{digits}f}" for one in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]"
