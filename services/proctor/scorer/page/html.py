"""The report's page: one self-contained HTML file without script, built from the document alone.

What is escaped, and how, is the environment's affair (`proctor.scorer.page.environment`). The page holds no copy of
the document: with no script element at all, nothing in it can run, and the digest that it states is that of
`report.json` beside it.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment

from proctor.domain.decision import DecisionOutcome
from proctor.domain.trial import Outcome
from proctor.scorer import headline
from proctor.scorer.logged import whence
from proctor.scorer.page import view
from proctor.scorer.page.environment import page_environment, report_templates
from proctor.scorer.page.looks import shown_looks
from proctor.scorer.report.document import Report, RunFacts, report_digest

MAX_IDS_LISTED = 200
#: The gate's own reasons are fewer; a strategy from elsewhere may bring any number.
MAX_REASONS_LISTED = 20
_OUTCOME_WORDS = {
    Outcome.CORRECT: "Right",
    Outcome.INCORRECT: "Wrong",
    Outcome.INVALID: "Unreadable",
    None: "No answer",
}


@cache
def _environment() -> Environment:
    environment = page_environment(report_templates())
    environment.filters.update(cut=view.cut, outcome_word=lambda outcome: _OUTCOME_WORDS[outcome])
    return environment


def render(report: Report, *, run: RunFacts | None = None, digest: str | None = None) -> str:
    """The page of a report, as HTML text to be written in UTF-8.

    Args:
        run: what belongs to this run alone; shown in the footer, outside the digest.
        digest: of the document, where it is at hand; a large one takes a second to work out.
    """
    found = report.evidence.perturbation
    # A document of before there was a scope says it by its evidence.
    scope = report.decision.scope or report.evidence.scope
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            report=report,
            found=found,
            run=run or RunFacts(),
            digest=digest or report_digest(report),
            outcome=report.decision.outcome,
            outcomes=DecisionOutcome,
            headline=view.HEADLINES[report.decision.outcome],
            scope=scope.value,
            scope_caveat=view.scope_caveat(report.decision.outcome, scope),
            answers_from=whence(report.card),
            harder_wordings=view.harder_wordings(report),
            why=view.why(report),
            numbers=headline.deciding_numbers(report),
            looks=shown_looks(report),
            accuracy_plot=view.accuracy_plot(report),
            arms=view.arm_rows(report),
            forest_plots=headline.forest_plots(report),
            leaked_share=headline.leaked_share(report),
            suspicion_plot=view.suspicion_plot(report),
            channels=view.channel_rows(report),
            channel_sections=view.channel_sections(report),
            flagged=view.flagged_ids(report),
            card=view.card_groups(report),
            max_ids=MAX_IDS_LISTED,
            max_reasons=MAX_REASONS_LISTED,
            max_sentence=view.MAX_SENTENCE_CHARACTERS,
        )
    )
