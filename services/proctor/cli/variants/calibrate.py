"""`proctor variants calibrate`: learn the admission gate's window for an encoder and a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import clean, print_json, say, table

if TYPE_CHECKING:
    from proctor.domain.evidence import Estimate
    from proctor.domain.gate_calibration import GateCalibration

_HEADINGS = (
    "window",
    "from",
    "to",
    "margin",
    "equivalent admitted",
    "different admitted",
    "nearest different admitted",
)
#: Of the pairs of near items; the rest stands in the file.
_PAIRS_SHOWN = 10
_NAME_CHARACTERS = 60
_FILE = click.Path(path_type=Path, dir_okay=False)
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("suite", type=_FILE)
@click.option("--pairs", type=_FILE, help="JSONL of rewordings known to be equivalent; by default the suite's own.")
@click.option("--different", type=_FILE, help="JSONL of rewordings known to differ; by default the nearest questions.")
@click.option(
    "--changed", type=_FILE, help="JSONL of questions changed on purpose, each with its kind; they do not teach."
)
@click.option("--out", type=_FILE, help="Where the calibration goes; by default calibration_path, else beside SUITE.")
@click.option(
    "--plot", "folder", type=click.Path(path_type=Path, file_okay=False), help="Also draw it, as SVG; needs `plots`."
)
@click.option("--true-admits", type=_SHARE, default=0.99, show_default=True, help="Share of equivalent pairs to hold.")
@click.option("--false-admits", type=_SHARE, default=0.001, show_default=True, help="Largest share of different pairs.")
@format_option
def calibrate(
    suite: Path,
    pairs: Path | None,
    different: Path | None,
    changed: Path | None,
    out: Path | None,
    folder: Path | None,
    true_admits: float,
    false_admits: float,
    output: str,
) -> None:
    """Learn the semantic window and the margin of SUITE's benchmark for this encoder, and write them down.

    Half of the benchmark's items teach, the other half is held out and shows what is admitted. Equivalent
    pairs come from a file (rows of item_id, index or original, and question), or from the suite's own strategy.
    Different pairs are, unless a file gives them, each item with the questions of the benchmark that are nearest to
    it and ask something else.

    A rewording is admitted in the window from its own item and, by the margin, nearer to it than to any other item of
    the benchmark. Both are as narrow as it takes to hold --true-admits of the equivalent pairs that pass the gate's
    other checks; narrower, where more than --false-admits of the different pairs would be admitted.

    What is admitted of questions that were changed on purpose (another setting, a further step) is known only where
    --changed brings such questions: rows as those of --pairs, and a kind each.

    A suite uses the file with "gate": "calibrated" and "calibration_path" in its perturbation_config.

    \b
    Examples:
      proctor variants calibrate suite.json --pairs rephrased.jsonl
      proctor variants calibrate suite.json --pairs rephrased.jsonl --changed changed.jsonl
      proctor variants calibrate suite.json --pairs rephrased.jsonl --plot figures --format json
    """
    from proctor.formats.suites import load_suite
    from proctor.perturbation.admission.calibration import calibrate as learn
    from proctor.perturbation.admission.window import Goals
    from proctor.perturbation.encoder import resolve_encoder
    from proctor.perturbation.remembering import RememberingEncoder
    from proctor.runtime.settings import Settings
    from proctor.studies.calibration import labelled_pairs

    loaded, base = load_suite(suite), suite.parent
    goals = Goals(true_admits, false_admits)
    settings = Settings.from_environment()
    encoder = RememberingEncoder(resolve_encoder(settings.encoder))
    say(f"measuring with {encoder.name}: about 10 s a thousand texts on two cores", err=True)
    given = labelled_pairs(loaded, base, settings, encoder, goals, same=pairs, other=different, changed=changed)
    for note in given.notes:
        say(f"note: {note}", err=True)
    learned = learn(
        given.pairs,
        loaded.perturbation,
        benchmark=loaded.dataset.benchmark_name,
        encoder=encoder,
        items=given.items,
        changed=given.changed,
        goals=goals,
        inputs=given.inputs,
    )
    path = out or base / (loaded.perturbation.calibration_path or "gate-calibration.json")
    _write(learned, path)
    if output == "json":
        print_json({**learned.plain(), "conclusion": learned.conclusion, "written": str(path)})
    else:
        _print(learned, path)
    if folder is not None:
        from proctor.cli.drawing import write_charts
        from proctor.studies.calibration_plots import figures

        write_charts(figures(learned), folder)


def _write(learned: GateCalibration, path: Path) -> None:
    from proctor.domain.errors import BadInputError
    from proctor.formats.gate_calibration import gate_calibration_bytes
    from proctor.runtime.files import write_atomic

    try:
        write_atomic(path, gate_calibration_bytes(learned), private=False)
    except OSError as error:
        raise BadInputError(f"{path} cannot be written: {error.strerror or error}") from None
    say(f"written: {path}", err=True)


def _print(learned: GateCalibration, path: Path) -> None:
    windows = (learned.rates, *learned.fixed_windows)
    say(
        table(
            _HEADINGS,
            [
                (
                    window.window,
                    f"{window.min_semantic_distance:g}",
                    f"{window.max_semantic_distance:g}",
                    "–" if window.min_margin is None else f"{window.min_margin:g}",
                    _share(window.true_admits),
                    _share(window.false_admits),
                    _share(window.nearest_admits),
                )
                for window in windows
            ],
        )
    )
    counts, bound = learned.held_out, learned.bounded_by
    say(f"(of {counts.equivalent:,} equivalent and {counts.different:,} different pairs held out; 95 % intervals)")
    reasons = ", ".join(f"{count} {reason}" for reason, count in learned.rejections.items()) or "none"
    say(f"equivalent pairs turned away, by reason: {reasons}")
    if learned.reworded_admits is not None:
        say(f"equivalent pairs put to the nearest other item instead, admitted: {_share(learned.reworded_admits)}")
    _print_changed(learned)
    _print_crowding(learned)
    say(f"area under the ROC: whole gate {learned.roc_gate.auc:.4f}, distance alone {learned.roc_distance.auc:.4f}")
    say(f"the {bound} pairs decided where window and margin end")
    click.secho(f"\n{clean(learned.conclusion)}", bold=True)
    say(f'To use it: "gate": "calibrated" and "calibration_path": "{path.name}" in perturbation_config.')


def _print_changed(learned: GateCalibration) -> None:
    if learned.changed is None:
        say("questions changed on purpose, admitted: not known; --changed brings such questions")
        return
    for one in learned.changed:
        say(f"questions changed on purpose, {_named(one.kind)}, admitted: {_share(one.admitted)} of {one.questions:,}")


def _print_crowding(learned: GateCalibration) -> None:
    crowding = learned.crowding
    if crowding is None or not crowding.pairs:
        say("no two items are nearer to each other than half of the rewordings are to their own")
        return
    say(
        f"{crowding.pairs:,} pairs of items ({crowding.items:,} items) are nearer to each other than half of the "
        f"rewordings are to their own item ({crowding.below:g}):"
    )
    for pair in crowding.nearest[:_PAIRS_SHOWN]:
        say(f"  {pair.distance:.4f}  {_named(pair.item)}  {_named(pair.other)}")
    if crowding.pairs > _PAIRS_SHOWN:
        say(f"  … and {crowding.pairs - _PAIRS_SHOWN:,} more; the file lists {len(crowding.nearest)}")
    say(
        "a rewording of the one is hard to tell from the other: it is turned away (another_item) unless it is nearer "
        f"to its own by {learned.min_margin:g}. {crowding.indistinct:,} items have another one nearer than that, and "
        "hardly any rewording of theirs can be admitted; an item without one is not audited, so the audit says nothing "
        "of it"
    )


def _named(name: str) -> str:
    """A name out of a file on one line, cut, without characters that act on a terminal."""
    return " ".join(clean(name if len(name) <= _NAME_CHARACTERS else name[:_NAME_CHARACTERS] + "…").split())


def _share(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "–"
    return f"{100 * estimate.value:.2f} % [{100 * estimate.low:.2f}, {100 * estimate.high:.2f}]"
