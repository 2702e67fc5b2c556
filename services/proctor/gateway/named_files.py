"""The files that a suite names, which travel with it. Apart from reading them, so that a client loads little."""

from __future__ import annotations

from proctor.domain.suite import Suite
from proctor.formats.suites import calibration_path, panel_path


def named_files(suite: Suite) -> dict[str, str]:
    """The names under which a suite's files are to be sent along, each with the field that names it."""
    names = {
        "dataset_config.path": suite.dataset.path,
        "perturbation_config.rewordings_path": suite.perturbation.rewordings_path,
        "perturbation_config.calibration_path": calibration_path(suite),
        "fresh_config.path": None if suite.fresh is None else suite.fresh.path,
        "fresh_config.panel_path": panel_path(suite),
        "control_config.path": None if suite.control is None else suite.control.path,
    }
    return {name: field for field, name in names.items() if name is not None}
