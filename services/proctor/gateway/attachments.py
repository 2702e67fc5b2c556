"""A suite that came with its files, from a caller who is not trusted with this machine's own."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.hub import NO_HUB, HubAccess
from proctor.domain.problems import visible
from proctor.domain.suite import Suite
from proctor.formats.suites import calibration_path
from proctor.gateway.named_files import named_files
from proctor.router.submit.gathering import AuditData, gather

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
#: Of a name: the suffix says what a file is, so the end is kept.
_MAX_NAME: Final = 64


def gather_attached(
    suite: Suite,
    files: dict[str, bytes],
    bundle: Path,
    benchmarks: Path | None = None,
    *,
    hub: HubAccess = NO_HUB,
    corpora: Path | None = None,
) -> AuditData:
    """Read the files that a suite names from what was sent along. No file of this machine is read under such a name.

    The suite itself stays as it is, so that its fingerprint is the one that it has where it came from.

    Args:
        suite: the suite.
        files: content by name, as the suite names them; taken out as it is placed, so that it is in memory once.
        bundle: the reference bundle, for the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.
        hub: what the operator lets suites have of the hub; what he has not said he lets no caller have.
        corpora: the operator's folder of training data, whose files alone may be searched; None where there is none.

    Raises:
        BadInputError: when a file is missing or superfluous, cannot be read, or what `gather` refuses.
    """
    if suite.exposure is not None and corpora is None:
        raise BadInputError(
            "exposure_config names training data, and this gateway has no folder of them: have its operator set "
            "PROCTOR_CORPORA, or leave the section out"
        )
    wanted = named_files(suite)
    for name, field in wanted.items():
        if name not in files:
            raise BadInputError(
                f"{field} is {visible(name)}, which was not sent along: send the file's content under that name"
            )
    if unasked := sorted(set(files) - set(wanted)):
        raise BadInputError(f"the suite names no file {visible(unasked[0])}: send along only what it names")
    with tempfile.TemporaryDirectory(prefix="proctor-submit-") as folder:
        base = Path(folder)
        placed = {name: _place(base, place, name, files.pop(name)) for place, name in enumerate(wanted)}
        try:
            data = gather(_placed(suite, placed), base, bundle, benchmarks, hub=hub.of_others(), corpora=corpora)
        except BadInputError as error:
            raise BadInputError(_renamed(str(error), base, placed)) from None
    return data._replace(suite=suite, notes=tuple(_renamed(note, base, placed) for note in data.notes))


def _place(base: Path, place: int, name: str, content: bytes) -> str:
    """Write a file under a name of our own, which ends as the caller's does, and return it."""
    shown = _UNSAFE.sub("_", PurePosixPath(name).name)[-_MAX_NAME:].lstrip(".")
    own = f"{place}/{shown or 'file'}"
    path = base / own
    path.parent.mkdir()
    path.write_bytes(content)
    return own


def _placed(suite: Suite, placed: Mapping[str, str]) -> Suite:
    def own(name: str | None) -> str | None:
        return None if name is None else placed.get(name, name)

    dataset = suite.dataset.model_copy(update={"path": own(suite.dataset.path)})
    section = suite.perturbation
    perturbation = section.model_copy(
        update={
            "rewordings_path": own(section.rewordings_path),
            "calibration_path": own(calibration_path(suite)),
        }
    )
    fresh = suite.fresh
    if fresh is not None:
        fresh = fresh.model_copy(update={"path": own(fresh.path), "panel_path": own(fresh.panel_path)})
    control = suite.control
    if control is not None:
        control = control.model_copy(update={"path": own(control.path)})
    sections = {"dataset": dataset, "perturbation": perturbation, "fresh": fresh, "control": control}
    return suite.model_copy(update=sections)


def _renamed(text: str, base: Path, placed: Mapping[str, str]) -> str:
    """A message with the caller's names in place of ours."""
    for name, own in placed.items():
        text = text.replace(str(base / own), visible(name))
    return text
