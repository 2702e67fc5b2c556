"""States of datasets that are rotated, as they lie beside their items."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proctor.domain.errors import BadInputError
from proctor.domain.rotation import MAX_STATE_BYTES, STATE_SUFFIX, Rotation

#: Of a folder; each is a series of its own in the metrics.
MAX_DATASETS: Final = 100


def read_rotation(path: Path) -> Rotation:
    """The state in a file.

    Raises:
        BadInputError: where there is none, or it is not one.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_STATE_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_STATE_BYTES:
        raise BadInputError(f"{path} is larger than {MAX_STATE_BYTES:,} bytes, which is no state of a rotation")
    try:
        return Rotation.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInputError(
            f"{path} is not the state of a rotation: {where}: {first['msg']}; it is written by `proctor dataset`, "
            f"and not "
            "by hand"
        ) from None


def rotations_in(folder: Path) -> list[tuple[str, Rotation]]:
    """Every state in a folder that can be read, by the name of its dataset, at most MAX_DATASETS of them."""
    found = []
    for path in sorted(folder.glob(f"*{STATE_SUFFIX}"))[:MAX_DATASETS]:
        try:
            found.append((path.name.removesuffix(STATE_SUFFIX), read_rotation(path)))
        except BadInputError:
            # Told by whoever rotates it; the others are due all the same.
            continue
    return found
