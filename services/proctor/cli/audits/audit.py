"""`proctor audit`: audit the model version that a suite pins."""

from __future__ import annotations

import time
from pathlib import Path

import click

from proctor.cli.audits.ci.files import CiFiles, ci_options
from proctor.cli.audits.importing import import_logs
from proctor.cli.audits.options import priority_option
from proctor.cli.audits.showing import list_audits, show, watch
from proctor.cli.audits.steering import cancel, pause, resume, submit
from proctor.cli.options import format_option, home_option
from proctor.domain.errors import ExitCode

#: Commands that take longer than this say what they are doing.
_QUIET_S = 2.0


@click.group()
def audit() -> None:
    """Audit a model version for benchmark contamination."""


for command in (submit, import_logs, show, watch, list_audits, pause, resume, cancel):
    audit.add_command(command)


@audit.command()
@click.argument("suite_file", metavar="SUITE", type=click.Path(path_type=Path, dir_okay=False))
@priority_option
@ci_options
@home_option
@format_option
def run(suite_file: Path, priority: str, ci: CiFiles, home: Path, output: str) -> ExitCode:
    """Audit the model version that SUITE pins, and write the decision to the registry.

    Where the suite's strategy asks a model to reword (paraphrase_llm and others), that model is asked first: the one
    of perturbation_config.paraphrase_model, at the endpoint of that name or at the audited model's. What the variant
    library holds is not asked again.

    Uses the stack that `proctor up` started in the same home, or starts one for the time it takes. An audit that was
    interrupted goes on where it stopped when the same command is given again. The registry is the local MLflow, or
    the one that PROCTOR_REGISTRY_URI names. An endpoint of the suite is one that PROCTOR_ENDPOINTS names or covers,
    or one on this machine; PROCTOR_OTHER_ENDPOINTS=public or =any opens others. A ceiling of budget_config stops the
    audit, and it goes on when it is started with a higher one. `proctor audit submit` does not wait for the decision.

    \b
    Examples:
      proctor audit run suite.json --priority high
      proctor audit run suite.json --junit proctor.xml --markdown proctor.md

    --junit and --markdown are for continuous integration: docs/ci.md.

    Exit codes: 0 approved, 1 failure, 2 bad input, 3 review, 4 blocked.
    """
    from proctor.cli.audits.auditing import EXIT_CODES, run_audits
    from proctor.cli.audits.away import Attendant
    from proctor.cli.audits.ci.outcome import outcome_of
    from proctor.cli.audits.ci.reports import report_beside, told_of_failure
    from proctor.cli.audits.results import print_results
    from proctor.cli.local import settings_to_come, stack_for
    from proctor.cli.terminal import print_json
    from proctor.domain.messages import Priority
    from proctor.formats.suites import load_suite
    from proctor.localstack.stack import StackSpec
    from proctor.localstack.state import live_state
    from proctor.router.submit.endpoints import named_endpoints
    from proctor.router.submit.gathering import gather, hold_content_private, hold_unrun_code
    from proctor.router.submit.terms import terms_of
    from proctor.runtime.settings import LOCAL_TRITON, Settings
    from proctor.studies.unusable_parts import hold_usable

    suite, settings = load_suite(suite_file), Settings.from_environment()
    hold_usable(suite, str(suite_file))
    # Before anything is started: a file that cannot be read, a model that is not named, or an endpoint that may not be
    # asked should cost no start of a stack.
    data = gather(suite, suite_file.parent, settings.bundle, settings.benchmarks, hub=settings.hub)
    to_come = settings_to_come(home)
    terms_of(suite, to_come)
    hold_content_private(data, to_come)
    hold_unrun_code(data, to_come)
    spec = StackSpec(mlflow=settings.registry_uri is None, triton=LOCAL_TRITON in named_endpoints(suite))
    stays = live_state(home) is not None
    with told_of_failure(ci, suite), stack_for(home, spec=spec) as stack:
        (result,) = run_audits(
            [data], stack.settings, attendant=Attendant(stack), priority=Priority(priority), stays=stays
        )
        ci = ci._replace(dashboard=ci.dashboard or stack.dashboard())
    if ci:
        ci.write(outcome_of(result.status(), report_beside(result.html_path), ci.dashboard))
    if output == "json":
        print_json(result.summary())
    else:
        print_results([result])
    return EXIT_CODES[result.event.outcome]


@audit.command()
@click.argument("suite_file", metavar="SUITE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--family", metavar="NAME", help="Family of models to assume, by name. [default: one that fits the items]"
)
@click.option(
    "--price-per-million-input", "input_price", metavar="X", type=float, help="Price of 1,000,000 prompt tokens."
)
@click.option(
    "--price-per-million-output", "output_price", metavar="Y", type=float, help="Price of 1,000,000 answer tokens."
)
@format_option
def plan(
    suite_file: Path, family: str | None, input_price: float | None, output_price: float | None, output: str
) -> None:
    """Say what an audit by SUITE will cost and could find. Nothing is started, and no model is asked.

    For 2, 3, 4 and 9 variants an item, and the suite's own number: trials, tokens, cost in the currency of the
    prices, the smallest share of leaked items that is found with 80 % power, and the chance that a clean model is
    approved. Below 80 % it warns, and names the items that would give 90 %. It warns too where the audit would pass a
    ceiling of the suite's budget_config (max_trials, max_tokens, max_cost). Without prices here, those that
    PROCTOR_ENDPOINTS gives the endpoint count.

    Chances depend on how a model's answers vary from wording to wording, so they are simulated for a family of
    models, which is named: guessers where every item has options, otherwise beta_1_1. The families: consistent,
    guessers, beta_2_1, beta_1_1, beta_4_1, beta_half_quarter, shared_luck, together.

    \b
    Examples:
      proctor audit plan suite.json
      proctor audit plan suite.json --price-per-million-input 2.5 --price-per-million-output 10
      proctor audit plan suite.json --family consistent --format json

    JSON keys, shares as fractions: suite, items, items_available, family, family_title, family_reason, rows[]
    (variants, own, trials, prompt_tokens, output_tokens_at_most, cost, detectable_share, approval_chance), families[]
    (name, title, approval_chance), approval_chance, items_for_90, budget (max_trials, max_tokens, max_cost, over),
    warning, channels_warning (where wordings are blind to such items and the suite requires nothing else), conclusion,
    notes[], scope (of an approval), scope_hint (what wording alone can say of these items, by their form),
    benchmark_kind (facts, letters, worked, other), item_kinds (options, short_fact, computed, other).
    """
    from proctor.cli.audits.plan_results import document, over_budget, print_plan, warning
    from proctor.cli.terminal import print_json, say
    from proctor.formats.suites import load_suite
    from proctor.runtime.settings import Settings
    from proctor.studies.plan import plan_audit
    from proctor.studies.prices import listed_prices, prices_of

    started = time.monotonic()

    def progress(text: str) -> None:
        if time.monotonic() - started > _QUIET_S:
            say(f"{text} …", err=True)

    suite = load_suite(suite_file)
    settings = Settings.from_environment()
    prices = prices_of(input_price, output_price) or listed_prices(suite, settings)
    where = suite_file.parent, settings.bundle, settings.benchmarks
    planned = plan_audit(suite, *where, hub=settings.hub, family=family, prices=prices, progress=progress)
    if output == "json":
        print_json(document(planned))
    else:
        print_plan(planned)
    for caution in filter(None, (warning(planned), planned.blind, over_budget(planned))):
        say(f"warning: {caution}", err=True)
