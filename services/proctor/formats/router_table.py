"""The table of a router study: one CSV row for each model and router count, checked against itself.

Columns `model, router_count, n, clean_accuracy, noisy_accuracy, gain, improve, degrade`, those of the paper's Table 2
(arXiv 2603.21636), and optionally `invalid`: how many of the n noisy answers hold no option, or true/false. Accuracies
are fractions or percent, one unit for the whole table. A gain is stated twice (noisy minus clean accuracy, improve
minus degrade), so a row that contradicts itself is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from proctor.domain.errors import BadInputError
from proctor.domain.noise import RouterSetting
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.rows import Row, read_rows

COLUMNS: Final = ("model", "router_count", "n", "clean_accuracy", "noisy_accuracy", "gain", "improve", "degrade")
INVALID_COLUMN: Final = "invalid"
_MAX_COUNT: Final = 10**9
#: A double written in full has no more.
_MAX_DECIMALS: Final = 60
_MAX_NAME_CHARACTERS: Final = 200
#: Figures that went through 32-bit floats.
_FLOAT_SLACK: Final = Decimal("0.000001")


class _FieldFault(Exception):
    pass


class _RowFaults(Faults):
    """A single fault is a single line."""

    def refuse(self) -> NoReturn:
        if len(self._lines) == 1:
            raise BadInputError(self._lines[0])
        super().refuse()


class _Parsed(NamedTuple):
    line: int
    model: str
    router_count: int
    n: int
    clean: Decimal
    noisy: Decimal
    gain: Decimal
    improve: int
    degrade: int
    invalid: int | None


def read_router_table(path: str | Path) -> tuple[RouterSetting, ...]:
    """The settings of a CSV table, in its order.

    Raises:
        BadInputError: for a file that is missing, empty or no such table, with every faulty row as `file:line`: a value
            that is no number or out of range, mixed fractions and percent, a (model, router_count) that stands twice, a
            missing clean arm or two of one model, or figures that contradict each other.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise BadInputError(f"{path}: a router table is a CSV file (.csv) with the columns {', '.join(COLUMNS)}")
    faults = _RowFaults(str(path))
    parsed: list[_Parsed] = []
    try:
        rows = list(read_rows(path, faults))
        if not rows and not faults:
            raise BadInputError(f"{path}: no rows; a router table holds one row for each model and router count")
        if rows:
            _check_columns(path, rows[0])
        for row in rows:
            try:
                parsed.append(_parse(row))
            except _FieldFault as fault:
                faults.add(row.position, str(fault))
        _check_units(parsed, faults)
        # Contradictions are meaningless before the unit is known.
        if not faults:
            _check_figures(parsed, faults)
            _check_arms(parsed, faults)
    except TooManyFaults:
        pass
    if faults:
        faults.refuse()
    scale = _scale(parsed)
    return tuple(_setting(row, scale) for row in parsed)


def _check_columns(path: Path, first: Row) -> None:
    missing = [name for name in COLUMNS if name not in first.values]
    if missing:
        had = ", ".join(shown(name) for name in list(first.values)[:12])
        raise BadInputError(
            f"{path}:1: the column {shown(missing[0])} is missing; a router table has {', '.join(COLUMNS)} "
            f"(and may have {INVALID_COLUMN}), this header has {had}"
        )


def _parse(row: Row) -> _Parsed:
    values = row.values
    model = str(values["model"]).strip()
    if not model or len(model) > _MAX_NAME_CHARACTERS or not model.isprintable():
        raise _FieldFault(
            f"model is {shown(model)}; a printable name of 1 to {_MAX_NAME_CHARACTERS} characters is needed"
        )
    if not str(values["clean_accuracy"]).strip():
        raise _FieldFault(f"clean_accuracy is empty: {shown(model)} has no clean arm to compare with; add its accuracy")
    n = _count(values, "n", low=1)
    return _Parsed(
        line=row.position,
        model=model,
        router_count=_count(values, "router_count", low=1),
        n=n,
        clean=_number(values, "clean_accuracy", low=0),
        noisy=_number(values, "noisy_accuracy", low=0),
        gain=_number(values, "gain", low=-100),
        improve=_count(values, "improve", low=0, high=n),
        degrade=_count(values, "degrade", low=0, high=n),
        invalid=_invalid(values, n),
    )


def _number(values: Mapping[str, Any], name: str, *, low: int, high: int = 100) -> Decimal:
    text = str(values[name]).strip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _FieldFault(f"{name} is {shown(text)}, which is no number") from None
    if not number.is_finite() or not low <= number <= high:
        raise _FieldFault(f"{name} is {shown(text)}; a number from {low} to {high} is needed")
    if int(number.as_tuple().exponent) < -_MAX_DECIMALS:
        raise _FieldFault(f"{name} is {shown(text)}; at most {_MAX_DECIMALS} decimals are read")
    return number


def _count(values: Mapping[str, Any], name: str, *, low: int, high: int = _MAX_COUNT) -> int:
    number = _number(values, name, low=low, high=high)
    if number != number.to_integral_value():
        raise _FieldFault(f"{name} is {shown(str(values[name]).strip())}; a whole number is needed")
    return int(number)


def _invalid(values: Mapping[str, Any], n: int) -> int | None:
    text = str(values.get(INVALID_COLUMN, "")).strip().lower()
    if not text:
        return None
    if text in ("true", "false"):
        return n if text == "true" else 0
    try:
        return _count(values, INVALID_COLUMN, low=0, high=n)
    except _FieldFault as fault:
        raise _FieldFault(f"{fault} (how many of the {n} noisy answers hold no option, or true/false)") from None


def _unit(row: _Parsed) -> Decimal | None:
    """1 where the row's accuracies are fractions, 100 where they are percent, None where both are 0."""
    largest = max(row.clean, row.noisy)
    return None if largest == 0 else Decimal(100) if largest > 1 else Decimal(1)


def _check_units(parsed: list[_Parsed], faults: Faults) -> None:
    first: _Parsed | None = None
    for row in parsed:
        smallest, largest = sorted((row.clean, row.noisy))
        if largest > 1 and 0 < smallest <= 1:
            faults.add(
                row.line,
                f"clean_accuracy {row.clean} and noisy_accuracy {row.noisy} mix percent and fractions; "
                "write every accuracy as a fraction from 0 to 1",
            )
            continue
        if _unit(row) is None:
            continue
        first = first or row
        if _unit(row) != _unit(first):
            faults.add(
                row.line,
                f"accuracies {row.clean} and {row.noisy} are {_unit_name(row)} where line {first.line} has "
                f"{_unit_name(first)} ({first.clean} and {first.noisy}); use one unit in the whole table",
            )
            # The rows after it would only say the same.
            return


def _unit_name(row: _Parsed) -> str:
    return "percent" if _unit(row) == 100 else "fractions"


def _scale(parsed: list[_Parsed]) -> Decimal:
    return next((unit for unit in map(_unit, parsed) if unit is not None), Decimal(1))


def _half_step(numbers: list[Decimal], scale: Decimal) -> Decimal:
    """Half a unit of the last decimal that a column shows, as a fraction: what rounding may have moved."""
    decimals = max(-int(number.as_tuple().exponent) for number in numbers)
    return Decimal(1).scaleb(-max(decimals, 0)) / 2 / scale + _FLOAT_SLACK


def _check_figures(parsed: list[_Parsed], faults: Faults) -> None:
    scale = _scale(parsed)
    clean_off = _half_step([row.clean for row in parsed], scale)
    noisy_off = _half_step([row.noisy for row in parsed], scale)
    gain_off = _half_step([row.gain for row in parsed], scale)
    for row in parsed:
        net = row.improve - row.degrade
        clean, noisy = row.clean / scale, row.noisy / scale
        clean_right, noisy_right = _right_answers(clean, clean_off, row.n), _right_answers(noisy, noisy_off, row.n)
        if not clean_right or not noisy_right:
            name, value = ("noisy_accuracy", row.noisy) if clean_right else ("clean_accuracy", row.clean)
            faults.add(row.line, f"{name} {value} is no whole number of {row.n} questions; check n")
        elif abs(noisy - clean - row.gain / scale) > clean_off + noisy_off + gain_off:
            faults.add(row.line, f"gain is {row.gain}, but noisy_accuracy − clean_accuracy is {row.noisy - row.clean}")
        elif not noisy_right[0] - clean_right[-1] <= net <= noisy_right[-1] - clean_right[0]:
            faults.add(
                row.line,
                f"improve − degrade is {net} of {row.n} questions, "
                f"but noisy_accuracy − clean_accuracy is {row.noisy - row.clean}",
            )
        elif row.degrade > clean_right[-1] or row.improve > row.n - clean_right[0]:
            faults.add(
                row.line,
                f"improve {row.improve} and degrade {row.degrade} do not fit clean_accuracy {row.clean} "
                f"of {row.n} questions: only wrong answers improve and only right ones degrade",
            )


def _right_answers(accuracy: Decimal, off: Decimal, n: int) -> range:
    """The numbers of right answers of n that an accuracy, rounded, may stand for."""
    return range(math.ceil((accuracy - off) * n), math.floor((accuracy + off) * n) + 1)


def _check_arms(parsed: list[_Parsed], faults: Faults) -> None:
    seen: dict[tuple[str, int], _Parsed] = {}
    clean: dict[str, _Parsed] = {}
    for row in parsed:
        before = seen.setdefault((row.model, row.router_count), row)
        if before is not row:
            faults.add(
                row.line,
                f"{shown(row.model)} with router_count {row.router_count} stands on line {before.line} already",
            )
        arm = clean.setdefault(row.model, row)
        if (row.clean, row.n) != (arm.clean, arm.n):
            faults.add(
                row.line,
                f"the clean arm of {shown(row.model)} has accuracy {row.clean} of {row.n} questions here and "
                f"{arm.clean} of {arm.n} on line {arm.line}; every setting of a model is compared with one clean arm",
            )


def _setting(row: _Parsed, scale: Decimal) -> RouterSetting:
    return RouterSetting(
        model=row.model,
        router_count=row.router_count,
        n=row.n,
        clean_accuracy=float(row.clean / scale),
        noisy_accuracy=float(row.noisy / scale),
        improve=row.improve,
        degrade=row.degrade,
        invalid_answers=row.invalid,
    )
