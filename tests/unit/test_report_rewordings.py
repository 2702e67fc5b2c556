"""The report's list of rewordings: every selected item with what was admitted for it and what was turned away."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

import pytest

from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.manifest import VariantSet
from proctor.scorer.page.html import MAX_REASONS_LISTED, render
from proctor.scorer.report import document
from proctor.scorer.report.document import Report, VariantsSummary, to_json
from proctor.scorer.report.rewordings import gather_rewordings, variants_summary
from tests.report_samples import SampleAudit, blocked


@pytest.fixture(scope="module")
def audit() -> SampleAudit:
    return blocked(n_items=60, leaked=0.3, knows=0.5)


@pytest.fixture(scope="module")
def report(audit: SampleAudit) -> Report:
    return audit.report()


def _items(n: int) -> list[Item]:
    return [Item(item_id=f"item-{index}", question=f"What is {index} and one?", target="x") for index in range(n)]


def _variant(item: Item, number: int, containment: float | None = 0.5, level: int = 1) -> Variant:
    return Variant(
        item_id=item.item_id,
        item_hash=item.content_hash,
        strategy="syntactic",
        level=level,
        question=f"{item.question} ({number})",
        measurements=Measurements(semantic_distance=0.1, token_overlap=0.2, edit_distance=0.3, containment=containment),
    )


def _summary(
    items: list[Item], variants: list[Variant] | None = None, rejections: list[Rejection] | None = None
) -> VariantsSummary:
    made = VariantSet(variants=tuple(variants or ()), rejections=tuple(rejections or ()), encoder="e")
    rewordings = gather_rewordings(made.variants, {item.item_id for item in items})
    return variants_summary("syntactic", items, made, rewordings, ())


def test_every_selected_item_stands_there_once_in_the_order_in_which_it_was_drawn(
    audit: SampleAudit, report: Report
) -> None:
    assert [row.item_id for row in report.variants.items] == [item.item_id for item in audit.items]
    assert report.variants.items_not_listed == 0


def test_an_item_has_all_of_its_admitted_rewordings_with_what_was_measured_on_each(
    audit: SampleAudit, report: Report
) -> None:
    listed = {(row.item_id, v.variant_id): (v, row) for row in report.variants.items for v in row.variants}
    assert set(listed) == {(variant.item_id, variant.variant_id) for variant in audit.variants}
    for variant in audit.variants:
        shown, _ = listed[variant.item_id, variant.variant_id]
        assert (shown.strategy, shown.level, shown.labels) == (variant.strategy, variant.level, variant.labels)
        assert shown.measurements == variant.measurements
        assert shown.question.text == variant.question


def test_an_items_rejections_are_counted_by_reason(audit: SampleAudit, report: Report) -> None:
    counted = Counter((row.item_id, reason) for row in report.variants.items for reason in row.rejected)
    assert set(counted) == {(rejection.item_id, rejection.reason) for rejection in audit.rejections}
    totals: Counter[str] = Counter()
    for row in report.variants.items:
        totals.update(row.rejected)
    assert totals == report.variants.rejected == Counter(rejection.reason for rejection in audit.rejections)


def test_two_rejections_of_an_item_for_one_reason_count_twice() -> None:
    items = _items(2)
    rejections = [Rejection(item_id="item-0", reason=reason) for reason in ("too_far", "duplicate", "too_far")]
    rows = _summary(items, rejections=rejections).items
    assert rows[0].rejected == {"too_far": 2, "duplicate": 1}
    assert rows[1].rejected == {}


def test_the_details_of_a_rejection_which_quote_the_rewording_are_not_in_the_document(report: Report) -> None:
    assert b"0.61 > 0.45" not in to_json(report)


def test_rewordings_stand_weakest_level_first_whatever_order_they_come_in() -> None:
    item = _items(1)[0]
    variants = [_variant(item, number, level=3 - number % 3) for number in range(6)]
    forwards, backwards = (_summary([item], order).items[0].variants for order in (variants, variants[::-1]))
    assert forwards == backwards
    assert [variant.level for variant in forwards] == [1, 1, 2, 2, 3, 3]


def test_items_past_the_limit_are_counted_and_the_first_drawn_are_kept() -> None:
    items = _items(document.MAX_ITEMS_LISTED + 7)
    summary = _summary(items, [_variant(items[-1], 1)])
    assert [row.item_id for row in summary.items] == [item.item_id for item in items[:-7]]
    assert summary.items_not_listed == 7
    assert summary.admitted == 1


def test_an_item_is_listed_with_all_of_its_rewordings_or_not_at_all() -> None:
    per_item = 99
    whole = document.MAX_REWORDINGS_LISTED // per_item
    items = _items(whole + 2)
    summary = _summary(items, [_variant(item, number) for item in items for number in range(per_item)])
    assert len(summary.items) == whole
    assert {len(row.variants) for row in summary.items} == {per_item}
    assert summary.items_not_listed == 2


def test_the_page_says_how_many_items_are_not_listed(report: Report) -> None:
    assert "not listed here" not in render(report)
    cut = report.variants.model_copy(update={"items": report.variants.items[:40], "items_not_listed": 1_234})
    page = render(report.model_copy(update={"variants": cut}))
    assert "The first 40 items drawn, with each rewording" in page
    assert "1,234 more items are not listed here nor in report.json" in page


def test_a_long_question_is_cut_with_a_visible_mark() -> None:
    item = Item(item_id="long", question="y" * 500, target="x")
    question = _summary([item]).items[0].question
    assert len(question.text) == document.MAX_LISTED_TEXT_CHARACTERS
    assert question.cut_characters == 500 - document.MAX_LISTED_TEXT_CHARACTERS


def test_the_spread_of_containment_is_over_the_rewordings_on_which_it_was_measured() -> None:
    item = _items(1)[0]
    some = _summary([item], [_variant(item, 1, None), _variant(item, 2, 0.25), _variant(item, 3, 0.75)])
    assert some.containment is not None
    assert (some.containment.low, some.containment.median, some.containment.high) == (0.25, 0.5, 0.75)
    assert _summary([item], [_variant(item, 1, None)]).containment is None
    assert _summary([item]).semantic_distance is None


class _Row(NamedTuple):
    scope: str
    cells: list[str]


class _Table(HTMLParser):
    """The rows of the table of all items: the scope of a row's header, and the text of every cell."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[_Row] = []
        self.captions = 0
        self._inside = self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "table":
            self._inside = attributes.get("class") == "by-item"
        elif not self._inside:
            return
        elif tag == "caption":
            self.captions += 1
        elif tag == "tr":
            self.rows.append(_Row("", []))
        elif tag in ("th", "td"):
            self._in_cell = True
            self.rows[-1].cells.append("")
            if tag == "th":
                self.rows[-1] = self.rows[-1]._replace(scope=attributes["scope"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._inside = False
        elif tag in ("th", "td"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._inside and self._in_cell:
            self.rows[-1].cells[-1] += data


def _table(report: Report) -> _Table:
    table = _Table()
    table.feed(render(report))
    table.close()
    return table


def test_the_page_has_a_line_for_each_item_and_a_row_of_measurements_for_each_rewording(report: Report) -> None:
    table = _table(report)
    lines = iter(table.rows)
    assert table.captions == 1
    assert next(lines).scope == "col"
    for item in sorted(report.variants.items, key=lambda row: row.item_id):
        line = next(lines)
        assert line.scope == "rowgroup"
        assert line.cells[0].split()[0] == item.item_id
        for variant in item.variants:
            row = next(lines)
            m = variant.measurements
            assert row.scope == "row"
            assert variant.variant_id in row.cells[0]
            assert variant.question.text in row.cells[0]
            measured = (m.semantic_distance, m.token_overlap, m.edit_distance, m.containment)
            assert row.cells[1:] == [f"{value:.3f}" for value in measured if value is not None]
    assert next(lines, None) is None


def test_an_item_without_a_rewording_says_so_with_the_reasons(report: Report) -> None:
    lines = {row.cells[0].split()[0]: " ".join(row.cells[0].split()) for row in _table(report).rows}
    assert lines["facts-0058"].endswith("no rewording admitted rejected: 1 answer invariant")
    assert lines["facts-0017"].endswith("rejected: 1 too far")
    assert "rejected" not in lines["facts-0001"]


def test_a_measurement_that_was_not_made_is_said_to_be_missing(audit: SampleAudit, report: Report) -> None:
    old = [
        v.model_copy(update={"measurements": v.measurements.model_copy(update={"containment": None})})
        for v in audit.variants
    ]
    summary = variants_summary(
        report.variants.strategy,
        audit.items,
        VariantSet(variants=tuple(old), rejections=(), encoder="e"),
        gather_rewordings(old, {item.item_id for item in audit.items}),
        (),
    )
    last = [row.cells[-1] for row in _table(report.model_copy(update={"variants": summary})).rows if row.scope == "row"]
    assert set(last) == {"–not measured"}


def test_reasons_past_the_limit_are_counted_in_the_totals_and_beside_the_item(report: Report) -> None:
    rejected = {f"reason_{index:02d}": 1 for index in range(MAX_REASONS_LISTED + 3)}
    first = report.variants.items[0].model_copy(update={"rejected": rejected})
    summary = report.variants.model_copy(update={"rejected": rejected, "items": (first,)})
    assert render(report.model_copy(update={"variants": summary})).count("… 3 more reasons in report.json") == 2


def test_the_page_of_five_hundred_items_with_three_long_rewordings_stays_under_two_megabytes() -> None:
    audit = blocked(n_items=500)
    audit.variants = [v.model_copy(update={"question": f"{v.question} {'<&> ' * 200}"}) for v in audit.variants]
    assert len(render(audit.report()).encode()) < 2_000_000
