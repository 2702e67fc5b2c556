"""`proctor dataset new`: items from templates or from an annotated file."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from proctor.cli.options import format_option

if TYPE_CHECKING:
    from proctor.domain.item import Item
    from proctor.studies.datasets.dimensions import Dimension
    from proctor.studies.datasets.store import Files

#: JSON holds them exactly.
_SEEDS: Final = 2**53
_NAMES: Final = ("factual_recall", "reasoning", "code_generation", "instruction_following")
_EVERY: Final = ("monthly", "quarterly", "half-yearly", "yearly")


@click.command()
@click.argument("dimension", type=click.Choice(_NAMES))
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File of items, FILE.jsonl."
)
@click.option("--count", default=500, show_default=True, type=click.IntRange(1, 100_000), help="Items from templates.")
@click.option("--seed", type=click.IntRange(0, _SEEDS - 1), help="Their seed. [default: drawn, and noted in the items]")
@click.option("--from", "annotated", type=click.Path(path_type=Path, dir_okay=False), help="Annotated rows instead.")
@click.option("--extractor", help="How answers are read, where the dimension leaves a choice.")
@click.option(
    "--held-out", "n_held", default=0, type=click.IntRange(0, 100_000), help="Further items that are held out."
)
@click.option("--every", type=click.Choice(_EVERY), default="quarterly", show_default=True, help="How often to rotate.")
@click.option("--force", is_flag=True, help="Overwrite what stands at --out, and begin its rotation anew.")
@format_option
def new(
    dimension: str,
    out: Path,
    count: int,
    seed: int | None,
    annotated: Path | None,
    extractor: str | None,
    n_held: int,
    every: str,
    force: bool,
    output: str,
) -> None:
    """Make a dataset of one capability, which no model has seen.

    \b
    dimension              scored by            templates make
    factual_recall         exact                questions on invented facts that the question tells
    reasoning              numeric              arithmetic word problems of several steps
    code_generation        execution            Python functions, with hidden tests
    instruction_following  constraints          short texts under rules that can be checked

    From templates, every item comes with an answer that its own grader takes for right. The same seed makes the same
    bytes, so a seed is as secret as the items: without --seed one is drawn. What templates measure, and what they do
    not, is in docs/datasets.md. Facts of the world, and whatever else only people can ask, come from your own file
    (--from: JSONL, CSV or Parquet with item_id, question, answer; choices where there are options). Its rows are
    checked
    one by one: ids and questions that stand there twice, questions that ask nearly nothing, answers that are missing or
    that the extractor would not read.

    With --held-out, so many further items (of --from: so many of its rows) lie beside it in FILE.pool.jsonl, for
    `proctor dataset rotate`. All files are for their owner alone.

    \b
    Examples:
      proctor dataset new reasoning --out reasoning.jsonl
      proctor dataset new code_generation --out code.jsonl --count 200 --held-out 600
      proctor dataset new factual_recall --from facts.csv --extractor answer_phrase --out facts.jsonl

    A suite asks the items by the sections that are printed. JSON keys: items, held_out, dimension, scoring, seed, path,
    rotation_due (null without a pool), suite (the sections).
    """
    from proctor.cli.terminal import print_json, say
    from proctor.domain.errors import BadInputError
    from proctor.domain.rotation import Every
    from proctor.studies.datasets.annotated import read_annotated
    from proctor.studies.datasets.dimensions import DIMENSIONS
    from proctor.studies.datasets.making import make_items
    from proctor.studies.datasets.store import Files

    asked, files = DIMENSIONS[dimension], Files.of(out)
    scoring = _scoring(asked, extractor)
    _may_write(files, force=force)
    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    if annotated is None:
        items = make_items(asked, count + n_held, seed=seed, scoring=scoring)
    else:
        items = read_annotated(annotated, asked, scoring)
        if n_held >= len(items):
            raise BadInputError(f"--held-out {n_held:,} leaves nothing of the {len(items):,} items of {annotated}")
    due = _write(files, items, n_held, Every(every), seed, annotated=annotated is not None)
    n_active = len(items) - n_held
    suite = _sections(asked, out, n_active, scoring)
    if output == "json":
        print_json(
            {
                "items": n_active,
                "held_out": n_held,
                "dimension": dimension,
                "scoring": scoring,
                "seed": seed,
                "path": str(out),
                "rotation_due": due,
                "suite": suite,
            }
        )
        return
    pool = f", {n_held:,} held out in {files.pool}; to be rotated by {due}" if n_held else ""
    say(f"{out}: {n_active:,} items of {dimension}, read by {scoring}{pool}")
    say(f"seed {seed}" if annotated is None else f"from {annotated}")
    if annotated is None:
        say(f"Mind: {asked.proves}.")
    if scoring == "execution":
        say("Mind: answers are graded by running them, which PROCTOR_CODE_EXECUTION=sandbox allows (docs/security.md).")
    say(f"\nIn a suite:\n{json.dumps(suite, indent=2)}")


def _scoring(dimension: Dimension, extractor: str | None) -> str:
    from proctor.domain.errors import BadInputError

    if extractor is not None and extractor not in dimension.extractors:
        raise BadInputError(
            f"--extractor {extractor!r} does not read answers of {dimension.name}; use one of "
            f"{', '.join(dimension.extractors)}"
        )
    return extractor or dimension.scoring


def _may_write(files: Files, *, force: bool) -> None:
    from proctor.domain.errors import BadInputError

    there = [path for path in (files.active, files.pool, files.retired, files.state) if path.exists()]
    if there and not force:
        raise BadInputError(
            f"{there[0]} is there already, and a record of what was shown may hang on it; name another file, or "
            f"overwrite "
            "it with --force"
        )
    if force:
        for path in there:
            path.unlink()


def _write(files: Files, items: list[Item], n_held: int, every: Any, seed: int, *, annotated: bool) -> str | None:
    """Write the files; the day on which a rotation is due, where there is a pool."""
    from datetime import UTC, datetime

    from proctor.domain.canonical import short_id
    from proctor.domain.errors import BadInputError
    from proctor.runtime.files import write_atomic
    from proctor.studies.datasets.item_files import written_items
    from proctor.studies.datasets.rotating import begun
    from proctor.studies.datasets.store import create

    try:
        if not n_held:
            write_atomic(files.active, written_items(items))
            return None
        pool = items[len(items) - n_held :]
        if annotated:
            # People write what belongs together one after the other.
            pool = sorted(items, key=lambda item: short_id(["held out", seed, item.item_id]))[:n_held]
        waiting = {item.item_id for item in pool}
        active = [item for item in items if item.item_id not in waiting]
        state = begun(active, pool, every=every, seed=seed, today=datetime.now(UTC).date())
        create(files, state, items)
    except OSError as error:
        raise BadInputError(f"{files.active} cannot be written: {error.strerror or error}") from None
    return state.due.isoformat()


def _sections(dimension: Dimension, out: Path, n: int, scoring: str) -> dict[str, Any]:
    """What a suite says to ask these items."""
    return {
        "dataset_config": {
            "benchmark_name": f"own-{dimension.name}",
            "path": out.name,
            "sample_size": n,
            "private": True,
        },
        "prompt_config": {"template": "{question}"} if scoring in ("execution", "constraints") else {},
        "metric_config": {"extractor": scoring},
    }
