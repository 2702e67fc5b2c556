"""The table of docs/exposure.md is what its script measures."""

from __future__ import annotations

import pytest

import measure_exposure_recall
from tests.support import REPOSITORY
from tests.unit.exposure.scans import gsm8k


#: On a machine that has never compiled the scan's loops, with three other workers beside it.
@pytest.mark.timeout(240)
def test_a_column_of_the_page_s_table_is_what_is_measured_now() -> None:
    page = (REPOSITORY / "docs" / "exposure.md").read_text("utf-8")
    printed = page.partition("<!-- recall -->\n")[2].partition("\n<!-- /recall -->")[0].splitlines()
    column = printed[0].split(" | ").index("`gpt3_13gram`")
    measured = measure_exposure_recall.measure(gsm8k(), ("gpt3_13gram",))
    assert [line.strip("| ").split(" | ")[column] for line in printed[2:]] == [
        f"{100 * row['gpt3_13gram']:.1f}" for row in measured.values()
    ]
    assert [line.strip("| ").split(" | ")[0] for line in printed[2:]] == list(measured)


@pytest.mark.timeout(240)
def test_rows_of_the_page_s_column_of_near_duplicates_are_what_is_measured_now() -> None:
    page = (REPOSITORY / "docs" / "exposure.md").read_text("utf-8")
    printed = page.partition("<!-- recall -->\n")[2].partition("\n<!-- /recall -->")[0].splitlines()
    column = printed[0].split(" | ").index("`--near minhash`")
    said = {line.strip("| ").split(" | ")[0]: line.strip("| ").split(" | ")[column] for line in printed[2:]}
    rows = ("typos in 10 % of words", "rephrased by GPT-4", "false positives")
    measured = measure_exposure_recall.measure(gsm8k(), ("--near minhash",), rows)
    assert {what: said[what] for what in rows} == {
        what: f"{100 * row['--near minhash']:.1f}" for what, row in measured.items()
    }
