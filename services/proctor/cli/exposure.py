"""`proctor exposure`: which items of a benchmark stand in training data, by a named policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option

if TYPE_CHECKING:
    from proctor.exposure.near.report import NearReport
    from proctor.exposure.report import ExposureReport

#: Exposed items that the table names.
_SHOWN = 20


@click.group()
def exposure() -> None:
    """Search training data for a benchmark's items.

    \b
    Example:
      proctor exposure scan --items test.jsonl --corpus 'corpus/*.jsonl.gz' --policy article_8gram_80
      proctor exposure policies
    """


@exposure.command()
@click.option(
    "--items", "items_path", metavar="FILE", required=True, type=click.Path(path_type=Path, dir_okay=False),
    help="The benchmark: JSONL, CSV or Parquet, an item a row.",
)  # fmt: skip
@click.option(
    "--corpus",
    metavar="GLOB",
    multiple=True,
    help="Files of the corpus; several times. STAGE=GLOB for those of another stage of training.",
)
@click.argument("more_corpus", metavar="[GLOB]...", nargs=-1)
@click.option("--policy", "policy_name", metavar="NAME", default="article_8gram_80", show_default=True,
              help="The rule by which an item counts as exposed: see `proctor exposure policies`.")  # fmt: skip
@click.option("--ngram", metavar="N", type=click.IntRange(1, 100), help="Words an n-gram, instead of the policy's own.")
@click.option("--stage", metavar="NAME", default="pretrain", show_default=True,
              help="The stage of training that the corpus is of: pretrain, tune, ….")  # fmt: skip
@click.option(
    "--template", metavar="NAME", help="The card's prompt template, where items name theirs (prompt_template)."
)
@click.option("--text-column", "columns", metavar="NAME", multiple=True,
              help="Column of the documents' text; by default text or content, or every column of text.")  # fmt: skip
@click.option("--without-markup", is_flag=True, help="Take Markdown's links, TeX's commands and HTML's tags out first.")
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), help="Processes; by default one a processor.")
@click.option("--state", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
              help="Keep what is done there, file by file; a scan that was interrupted goes on from it.")  # fmt: skip
@click.option("--max-skipped", metavar="SHARE", type=click.FloatRange(0, 1), default=0.01, show_default=True,
              help="No verdict where more than this share of the corpus could not be read.")  # fmt: skip
@click.option("--near", "near", metavar="METHOD", multiple=True,
              help="Search for near duplicates, too: minhash (edited copies) or embedding (paraphrases).")  # fmt: skip
@click.option("--near-sample", metavar="N", type=click.IntRange(0), default=20_000, show_default=True,
              help="Passages of the corpus that are embedded, drawn from all of it; 0 for all.")  # fmt: skip
@click.option("--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True,
              help="Of that draw.")  # fmt: skip
@click.option("--page", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Write a page for a person, too: items against documents, the text marked in both.")  # fmt: skip
@format_option
def scan(
    items_path: Path,
    corpus: tuple[str, ...],
    more_corpus: tuple[str, ...],
    policy_name: str,
    ngram: int | None,
    stage: str,
    template: str | None,
    columns: tuple[str, ...],
    without_markup: bool,
    workers: int | None,
    state: Path | None,
    max_skipped: float,
    near: tuple[str, ...],
    near_sample: int,
    seed: int,
    page: Path | None,
    output: str,
) -> None:
    """Stream a corpus past a benchmark's items and say which are exposed.

    Reads JSONL, Parquet and plain text, packed by gzip or Zstandard or not. Each part of an item (question, choices,
    answer, passage) is looked for by itself; how much of it one document holds, its longest run and the matched text
    are the evidence. Finding nothing says that this policy's rule does not hold, and not that the items are clean:
    docs/exposure.md has the recall of each policy.

    \b
    Example:
      proctor exposure scan --items test.jsonl --corpus train.jsonl --policy any_ngram --ngram 8
      proctor exposure scan --items items.jsonl --corpus 'web/*.zst' --corpus 'tune=sft/*.parquet' --format json
      proctor exposure scan --items test.jsonl --corpus 'tune=sft/*.jsonl' --near minhash --near embedding
    """
    from proctor.cli.exposure_progress import scan_progress
    from proctor.cli.terminal import print_json
    from proctor.domain.errors import BadInputError
    from proctor.studies.exposure.scan import ExposureQuestion, exposure_scan

    patterns = (*corpus, *more_corpus)
    if not patterns:
        raise BadInputError("--corpus is missing: name the files of the training data, e.g. --corpus 'corpus/*.jsonl'")
    question = ExposureQuestion(
        items=items_path,
        corpus=patterns,
        policy=policy_name,
        ngram=ngram,
        stage=stage,
        template=template,
        columns=columns,
        without_markup=without_markup,
        workers=workers,
        state=state,
        max_skipped=max_skipped,
        near=near,
        near_sample=near_sample or None,
        near_seed=seed,
    )
    with scan_progress() as progress:
        report = exposure_scan(question, progress)
    if page is not None:
        _write_page(report, page)
    if output == "json":
        print_json(report.document())
    else:
        _print(report)


@exposure.command()
@format_option
def policies(output: str) -> None:
    """List the policies: each rule, and whose it is."""
    from proctor.cli.terminal import print_json, say, table
    from proctor.exposure.policies import POLICIES

    if output == "json":
        print_json(
            [{"name": one.name, "ngram": one.n, "rule": one.words, "source": one.source} for one in POLICIES.values()]
        )
        return
    say(table(("policy", "n", "exposed where"), [(one.name, one.n, one.words) for one in POLICIES.values()]))
    say("")
    for one in POLICIES.values():
        say(f"{one.name}: {one.source}")


def _write_page(report: ExposureReport, path: Path) -> None:
    from proctor.cli.terminal import say
    from proctor.domain.errors import BadInputError
    from proctor.runtime.files import write_atomic
    from proctor.studies.exposure.page import render

    try:
        write_atomic(path, render(report).encode(), private=False)
    except OSError as error:
        raise BadInputError(f"--page {path} cannot be written: {error.strerror or error}") from None
    say(f"page: {path}", err=True)


def _print(report: ExposureReport) -> None:
    from proctor.cli.terminal import say, table

    total = report.total
    exposed = [item for item in report.items if item.is_exposed]
    say(f"Policy {report.policy.name} with {report.n}-grams: {report.policy.words}.")
    for stage, counts in report.counts.items():
        said = f"{counts.documents:,} documents ({counts.bytes:,} bytes of text), {counts.skipped:,} skipped"
        say(f"Searched {stage} data: {said}.")
    for place in total.skipped_places[:3]:
        say(f"  skipped {place.file}:{place.position}: {place.reason}", err=True)
    say(
        f"Exposed: {len(exposed):,} of {len(report.items):,} items; {report.n_unscorable:,} are too short to be scored."
    )
    if exposed:
        say("")
        rows = [
            (
                item.item_id,
                "–" if item.containment is None else f"{item.containment:.2f}",
                item.longest_run,
                item.verdict.value,
                f"{item.spans[0]['file']}:{item.spans[0]['document']}" if item.spans else "",
                (item.spans[0]["document_text"] if item.spans else "")[:60],
            )
            for item in exposed[:_SHOWN]
        ]
        say(table(("item", "containment", "longest run", "verdict", "document", "text"), rows))
        if len(exposed) > _SHOWN:
            say(f"… and {len(exposed) - _SHOWN:,} more: --format json has them all")
    for search in report.near:
        _print_near(report, search)
    if not exposed:
        say("That no overlap was found is no proof that there is none: docs/exposure.md says what this policy misses.")


def _print_near(report: ExposureReport, search: NearReport) -> None:
    from proctor.cli.terminal import say, table

    say("")
    said = f"{search.n_near:,} of {len(report.items):,} items"
    refused = f"{search.n_refused:,} more have only what asks something else"
    say(f"Near duplicates by {search.method.value}: {said}; {refused}.")
    say(f"  {search.rule[0].upper()}{search.rule[1:]}.")
    if "passages" in search.settings:
        embedded, passages = search.settings["passages_embedded"], search.settings["passages"]
        say(f"  {embedded:,} of {passages:,} passages were embedded.")
    rows = [
        (item.item_id, f"{one.match.similarity:.2f}", f"{one.match.file}:{one.match.document}", one.match.text[:60])
        for item in report.items
        for one in item.near
        if one.is_duplicate and one.method is search.method
    ]
    if rows:
        say(table(("item", "similarity", "document", "text"), rows[:_SHOWN]))
        if len(rows) > _SHOWN:
            say(f"… and {len(rows) - _SHOWN:,} more: --format json has them all")
