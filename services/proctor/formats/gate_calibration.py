"""Calibrations of the admission gate as files."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.problems import quoted

#: A calibration is a few kilobytes: counts, a curve and a histogram.
MAX_BYTES: Final = 1 << 18
_MEND = "run `proctor variants calibrate` again"


def parse_gate_calibration(data: bytes, source: str) -> GateCalibration:
    """Read what `proctor variants calibrate` wrote.

    Raises:
        BadInputError: naming the first fault, for a file that is anything else.
    """
    if len(data) > MAX_BYTES:
        raise BadInputError(
            f"{source} is no calibration of the gate (it is larger than {MAX_BYTES >> 10} KiB): {_MEND}"
        )
    try:
        return GateCalibration.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        what = f"{place} is {quoted(first['input'])}: {first['msg']}" if place else first["msg"]
        raise BadInputError(f"{source} is no calibration of the gate ({what}): {_MEND}") from None


def gate_calibration_bytes(calibration: GateCalibration) -> bytes:
    """The document as it is written: JSON for people and digests, the same bytes for the same calibration."""
    return calibration.model_dump_json(indent=2).encode() + b"\n"
