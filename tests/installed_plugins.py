"""A distribution with plug-ins as it looks when it is installed, for tests that bring one: no installer is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path,
    modules: Mapping[str, str],
    entry_points: Mapping[str, Mapping[str, str]],
    *,
    name: str = "toy",
    version: str = "1.2",
) -> Path:
    """Lay a distribution into a folder; returns the folder, which is to go on the path of whoever uses it.

    Args:
        modules: name → source.
        entry_points: group → name → reference.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)
    # As installers name it: what stands before the first hyphen is the name.
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (f"[{group}]", *(f"{point} = {reference}" for point, reference in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
