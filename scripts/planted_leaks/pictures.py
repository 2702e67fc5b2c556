"""The plots of docs/study.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from calibration.forms import Scale, Series, line_chart
from planted_leaks.benchmarks import KINDS
from planted_leaks.cells import EXACT, NONE, REPHRASED, Cell
from planted_leaks.judging import FRESH, PERTURBATION
from planted_leaks.power import Power
from proctor.studies.charts import chart_style

_PERCENT: Final = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
_LEAKS: Final = {EXACT: "exact", REPHRASED: "rephrased", NONE: "none"}
_SHORT: Final = {"facts": "facts", "letters": "letters", "worked": "worked answers"}


def pictures(powers: Mapping[Cell, Power]) -> dict[str, str]:
    """File name → SVG document."""
    with chart_style():
        return {
            "power-wording.svg": _over_dose("How often the wording comparison finds the leak", PERTURBATION, powers),
            "power-fresh.svg": _over_dose("How often 400 fresh items find the leak", FRESH, powers),
        }


def _over_dose(title: str, channel: str, powers: Mapping[Cell, Power]) -> str:
    doses = sorted({cell.dose for cell in powers if cell.dose})
    series: list[Series] = []
    for kind in KINDS:
        for leak, words in _LEAKS.items():
            if leak == NONE:
                continue
            points = tuple((float(dose), _mean(kind, leak, dose, channel, powers)) for dose in doses
                           if _cells(kind, leak, dose, powers))  # fmt: skip
            if points:
                series.append(Series(f"{_SHORT[kind]}, {words}", points))
    ticks = tuple(float(dose) for dose in doses)
    return line_chart(
        title,
        "share of audits that say contaminated, mean over seeds; dashed: 80 %",
        series,
        Scale("times that each leaked item was trained on", ticks, log=True),
        Scale("audits, %", _PERCENT),
        limit=80.0,
    )


def _cells(kind: str, leak: str, dose: int, powers: Mapping[Cell, Power]) -> Sequence[Cell]:
    return [cell for cell in powers if cell[:4] == (kind, leak, dose, 0)]


def _mean(kind: str, leak: str, dose: int, channel: str, powers: Mapping[Cell, Power]) -> float:
    found = [powers[cell].contaminated[channel] for cell in _cells(kind, leak, dose, powers)]
    return 100 * float(np.mean(found))
