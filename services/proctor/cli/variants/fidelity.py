"""`proctor variants fidelity`: record what rewording cost a model that a person declares clean."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option, home_option


@click.command()
@click.argument("audit_id", metavar="AUDIT")
@click.option(
    "--grounds",
    required=True,
    metavar="TEXT",
    help="Why the audited model cannot have seen the benchmark; stands in the reports of the audits that it controls.",
)
@click.option(
    "--despite-block", is_flag=True, help="Record it although its own audit was blocked, because the grounds hold."
)
@home_option
@format_option
def fidelity(audit_id: str, grounds: str, despite_block: bool, home: Path, output: str) -> None:
    """Declare the model of AUDIT clean, and record what rewording cost it.

    AUDIT is the id of a decided audit of this home; its report lies in the folder of that name and says it in its last
    line. Nothing is asked again: the cost, canonical minus reworded accuracy, comes from that audit's graded answers.

    From then on, audits of other models by the same strategy on the same benchmark are held against this one
    (difference-in-differences), and their reports name it with its grounds: a limit blocks only where what is lost
    beyond this model's cost is past it too. It never approves what would not be approved without it, and no model is
    its own control.

    That a model is clean is your word; a low score inflation does not prove it. A blocked audit is refused: either the
    model knows the benchmark, or the rewordings are harder for everybody, and the audit cannot say which. Where the
    grounds can, --despite-block records it, and the reports say so.

    \b
    Examples:
      proctor variants fidelity 4f1d0c2b9a7e6d53-1 --grounds "the benchmark was written after its training data"
      proctor variants fidelity 4f1d0c2b9a7e6d53-1 --grounds "trained by us, without it" --format json

    JSON keys: audit, model, model_digest, model_digest_verified, decision, grounds, strategy, benchmark, rewordings,
    items, cost_points, cost_points_ci, level, accuracy, accuracy_ci, new, notes[], conclusion.
    """
    from proctor.cli.terminal import print_json, say
    from proctor.cli.variants.declaring import declare_clean
    from proctor.cli.variants.opening import records_of, settings_of
    from proctor.runtime.artifacts.opening import open_artifacts

    settings = settings_of(home)
    with records_of(settings) as records:
        declared = declare_clean(audit_id, grounds, records, open_artifacts(settings), despite_block=despite_block)
    if output == "json":
        print_json(declared.document())
        return
    for note in declared.notes:
        say(f"note: {note}\n")
    say(declared.conclusion)
