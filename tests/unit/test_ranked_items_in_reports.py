"""What a report shows of the ranking: the suspected items, and how many have no suspicion."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.audits.auditing import AuditResult
from proctor.cli.demo import LEAKED, LEAKED_ITEMS, planted_truth
from proctor.domain.evidence import Evidence
from proctor.router.ledger.types import Progress
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, to_json
from proctor.scorer.report.event import event_of
from tests.report_samples import blocked


@pytest.fixture(scope="module")
def report() -> Report:
    return blocked().report()


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\N{NO-BREAK SPACE}", " ").split())


def _summary(document: dict[str, Any], report: Report, folder: Path) -> dict[str, Any]:
    event = event_of("a", report, "sha256:" + "0" * 64, "report.html")
    progress = Progress(planned=1, done=1, leased=0, dead=0)
    return AuditResult("a", event, document, folder / "report.html", progress, None).summary()


def test_the_page_ranks_and_plots_the_suspected_items_and_says_how_many_have_no_suspicion(report: Report) -> None:
    found = report.evidence.perturbation
    assert found is not None
    suspected, without = len(found.suspected), len(found.items) - len(found.suspected)
    assert 0 < suspected < len(found.items)
    page = render(report)
    assert f"Suspicion of {suspected} items by rank" in _text(page)
    assert f"The other {without} items have no suspicion and no rank" in _text(page)
    (plot,) = re.findall(r'<svg class="plot rank".*?</svg><svg|<svg class="plot rank".*', page)
    assert f'viewBox="0 0 {suspected} 1"' in plot
    assert f"{suspected} suspected items, " in plot


def test_a_report_in_which_no_item_is_suspected_ranks_and_plots_none(report: Report) -> None:
    found = report.evidence.perturbation
    assert found is not None
    cleared = tuple(item.model_copy(update={"suspicion": 0.0, "rank": None, "flagged": False}) for item in found.items)
    evidence: Evidence = report.evidence.model_copy(
        update={"perturbation": found.model_copy(update={"items": cleared})}
    )
    page = render(report.model_copy(update={"evidence": evidence, "items": ()}))
    assert "none is suspected and none is ranked" in _text(page)
    assert 'class="plot rank"' not in page


def test_every_item_has_its_score_in_the_document_and_a_rank_where_it_is_suspected(report: Report) -> None:
    document = json.loads(to_json(report))
    items = document["evidence"]["perturbation"]["items"]
    ranks = [item["rank"] for item in items if item["suspicion"] > 0]
    assert ranks == list(range(1, len(ranks) + 1))
    assert {item["rank"] for item in items if item["suspicion"] == 0} == {None}
    assert [item["rank"] for item in document["items"]] == ranks[: len(document["items"])]


def test_the_command_s_json_says_how_many_items_are_suspected_and_ranks_no_other(
    report: Report, tmp_path: Path
) -> None:
    summary = _summary(json.loads(to_json(report)), report, tmp_path)
    ranked = [item["rank"] for item in summary["items"] if item["rank"] is not None]
    assert ranked == list(range(1, summary["n_suspected_items"] + 1))
    assert len(summary["items"]) == summary["n_items"] > len(ranked)


def test_a_report_of_before_there_were_ranks_is_still_read_and_printed(report: Report, tmp_path: Path) -> None:
    document = json.loads(to_json(report))
    for item in document["evidence"]["perturbation"]["items"]:
        del item["rank"]
    old = Report.model_validate(document)
    assert "by rank" in render(old)
    summary = _summary(document, old, tmp_path)
    assert summary["n_suspected_items"] > 0
    assert {item["rank"] for item in summary["items"]} == {None}


def test_the_demo_holds_the_planted_truth_against_ranked_items_alone(tmp_path: Path) -> None:
    """An item without suspicion may have leaked, and be named first among its likes: that finds nothing."""
    folder = tmp_path / "models" / LEAKED
    folder.mkdir(parents=True)
    (folder / LEAKED_ITEMS).write_text(json.dumps({"item_ids": ["a", "b", "c"]}))
    items = [{"item_id": "b", "rank": 1}, {"item_id": "x", "rank": 2}, {"item_id": "a", "rank": None}]
    truth = planted_truth(tmp_path, [{"model": LEAKED, "items": items}])
    assert truth == {"leaked_items": 3, "most_suspected": 2, "found_among_most_suspected": 1}
