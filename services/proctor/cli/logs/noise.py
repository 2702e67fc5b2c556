"""`proctor noise`: what a table of clean and noisy router settings says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import clean, print_json, say, table
from proctor.domain.levels import SIGNIFICANCE_ALPHA

if TYPE_CHECKING:
    from proctor.domain.evidence import Estimate
    from proctor.domain.noise import NoiseSummary

_MODEL_HEADINGS = (
    "model", "clean", "violations", "max excess", "mean excess", "over all", "mean gain", "min p (Holm)", "invalid",
    "slope per router", "confidence",
)  # fmt: skip
_COUNT_HEADINGS = (
    "routers", "violating models", "mean excess", "over all", "mean gain", "improve", "degrade", "net", "invalid",
)  # fmt: skip
_SETTING_HEADINGS = ("model", "routers", "gain", "improve", "degrade", "p", "Holm in model", "Holm in table")


@click.command()
@click.argument("file", metavar="TABLE", type=click.Path(path_type=Path, dir_okay=False))
@format_option
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=SIGNIFICANCE_ALPHA,
    show_default=True,
    help="Level of the tests; intervals cover 1 - ALPHA.",
)
@click.option(
    "--plot",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also draw four figures into this folder, as SVG; needs the extra `plots`.",
)
def noise(file: Path, output: str, alpha: float, folder: Path | None) -> None:
    """Say whether noise between a question and a model raises its score, and whether that is more than chance.

    TABLE is a CSV file with one row for each model and router count, and the columns model, router_count, n,
    clean_accuracy, noisy_accuracy, gain, improve, degrade; optionally invalid (how many noisy answers hold no
    option). Noise should not systematically raise the score of a clean model; one that has seen the benchmark may
    gain from it (arXiv 2603.21636).

    A gain above 0 is a violation, but a single draw too: each has a one-sided exact McNemar test, corrected by
    Holm. Accuracies, gains and excesses are fractions. mean_positive_excess is the paper's: the mean over the
    settings above the clean baseline alone (a dash, in JSON null, where there is none);
    mean_excess_over_all_settings counts the others as 0.

    \b
    Examples:
      proctor noise routers.csv
      proctor noise routers.csv --format json --plot figures
    """
    from proctor.evidence.noise.summary import noise_summary
    from proctor.formats.router_table import read_router_table

    rows = read_router_table(file)
    summary = noise_summary(rows, alpha=alpha)
    if output == "json":
        print_json(document(summary, rows=len(rows)))
    else:
        _print(summary)
    if folder is not None:
        from proctor.cli.drawing import write_charts
        from proctor.studies.noise_plots import figures

        write_charts(figures(summary), folder)


def document(summary: NoiseSummary, *, rows: int) -> dict[str, Any]:
    """The JSON form: the summary, and what it is of."""
    return {"rows": rows, **summary.plain(), "surviving_holm": len(summary.significant)}


def _print(summary: NoiseSummary) -> None:
    say("By model (means over its router counts):")
    rows: list[tuple[object, ...]] = [
        (
            model.model,
            f"{model.clean_accuracy:.3g}",
            f"{model.violations} of {model.settings}",
            _signed(model.max_positive_excess),
            _signed(model.mean_positive_excess),
            _signed(model.mean_excess_over_all_settings),
            _signed(model.mean_gain),
            _p(model.holm_min_p),
            model.invalid_settings,
            _estimate(model.sensitivity),
            "–" if model.score_confidence.value is None else f"{model.score_confidence.value:.2f}",
        )
        for model in summary.models
    ]
    say(table(_MODEL_HEADINGS, rows))
    say("\nBy router count (improve and degrade are sums over models):")
    rows = [
        (
            count.router_count,
            f"{count.violating_models} of {count.models}",
            _signed(count.mean_positive_excess),
            _signed(count.mean_excess_over_all_settings),
            _signed(count.mean_gain),
            count.improve,
            count.degrade,
            f"{count.net_improve:+d}",
            count.invalid_settings,
        )
        for count in summary.router_counts
    ]
    say(table(_COUNT_HEADINGS, rows))
    if summary.significant:
        say(f"\nGains that survive Holm over all {summary.tested_settings} settings:")
        rows = [
            (
                setting.model,
                setting.router_count,
                _signed(setting.gain),
                setting.improve,
                setting.degrade,
                _p(setting.p_value),
                _p(setting.holm_p_model),
                _p(setting.holm_p_table),
            )
            for setting in summary.significant
        ]
        say(table(_SETTING_HEADINGS, rows))
    say(
        "\n(mean excess: over the settings above the clean baseline alone, as in the paper's tables; over all: the "
        "same with every other setting as 0)"
    )
    say("\nTests:")
    tests = [part for test in summary.hypotheses for part in (test, *test.parts)]
    say(table(("hypothesis", "p", "null hypothesis"), [(t.name, _p(t.p_value), t.null_hypothesis) for t in tests]))
    say(f"(slopes have {100 * (1 - summary.alpha):g} % intervals; confidence = 1 - |slope x range of router counts|)")
    click.secho(f"\n{clean(summary.conclusion)}", bold=True)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.4f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:+.4f}"
    return f"{estimate.value:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]"
