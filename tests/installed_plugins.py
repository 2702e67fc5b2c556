"""A distribution with plug-ins as it looks when it is installed, for tests that bring one: no installer is run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor.domain.plugins import ExtensionPoint, declared
from proctor.router.stages.registry import stages_with


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


class Plugins:
    """Distributions that are there for one test, in its own process.

    Args:
        folder: where they are laid.
        monkeypatch: of the test, which takes them off the path again.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._modules: set[str] = set()
        self._installed = 0

    def install(
        self,
        modules: Mapping[str, str],
        entry_points: Mapping[str, Mapping[str, str]],
        *,
        name: str = "toy",
        version: str = "1.2",
    ) -> Path:
        """Lay a distribution and have it found, in the place of an earlier version of it; returns what to put on the
        path of other processes."""
        self.forget()
        self._installed += 1
        folder = install(self._folder / str(self._installed), modules, entry_points, name=name, version=version)
        self._monkeypatch.syspath_prepend(str(folder))
        self._modules |= modules.keys()
        # What an extension point remembers would outlive the test.
        self._monkeypatch.setattr(ExtensionPoint, "get", lambda point, part: point._load(part))
        return folder

    def uninstall(self) -> None:
        """Take off the path what was installed: this process is then one of a machine that lacks it."""
        laid = str(self._folder)
        self._monkeypatch.setattr(sys, "path", [place for place in sys.path if not place.startswith(laid)])
        self.forget()

    def forget(self) -> None:
        """Have everything looked for anew."""
        declared.cache_clear()
        stages_with.cache_clear()
        for module in self._modules:
            sys.modules.pop(module, None)
