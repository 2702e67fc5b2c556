"""docs/study is what follows from the grades that it keeps."""

from __future__ import annotations

import csv
import io

import pytest

from planted_leaks.document import cells_csv
from planted_leaks.grades import read_packed
from planted_leaks.judging import judge_all
from tests.support import REPOSITORY

_STUDY = REPOSITORY / "docs" / "study"
#: ConStat's bootstrap takes minutes over all cells, so here it is drawn once and its figures are not compared.
_DRAWN = ("constat_points", "constat_p")


def _rows(sheet: str) -> list[dict[str, str]]:
    return [
        {name: value for name, value in row.items() if name not in _DRAWN} for row in csv.DictReader(io.StringIO(sheet))
    ]


@pytest.mark.timeout(180)
def test_every_published_cell_is_computed_anew_from_its_grades() -> None:
    judged = judge_all(read_packed(_STUDY / "grades.jsonl.gz"), replicates=1)
    assert judged
    assert _rows(cells_csv(judged)) == _rows((_STUDY / "cells.csv").read_text(encoding="utf-8"))


def test_the_grades_of_the_study_take_less_than_five_megabytes() -> None:
    assert (_STUDY / "grades.jsonl.gz").stat().st_size < 5_000_000


def test_the_page_says_first_what_speaks_against_proctor() -> None:
    page = (REPOSITORY / "docs" / "study.md").read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[0] == "## What it says against Proctor"
