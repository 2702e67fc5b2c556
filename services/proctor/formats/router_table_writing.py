"""Writing the table of a router study, of the form that `formats.router_table` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from proctor.domain.noise import RouterSetting
from proctor.formats.router_table import COLUMNS, INVALID_COLUMN

#: Its name beside a report.
ROUTER_TABLE: Final = "routers.csv"


def router_table(settings: Sequence[RouterSetting]) -> bytes:
    """The table's bytes: CSV in UTF-8, one row for each setting, accuracies as fractions, by rising router count."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow([*COLUMNS, INVALID_COLUMN])
    for setting in sorted(settings, key=lambda setting: (setting.model, setting.router_count)):
        rows.writerow(
            [
                setting.model,
                setting.router_count,
                setting.n,
                repr(setting.clean_accuracy),
                repr(setting.noisy_accuracy),
                repr((setting.improve - setting.degrade) / setting.n),
                setting.improve,
                setting.degrade,
                "" if setting.invalid_answers is None else setting.invalid_answers,
            ]
        )
    return stream.getvalue().encode("utf-8")
