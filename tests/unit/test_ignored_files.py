"""What lies in a working tree and is no part of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import REPOSITORY, missing


@pytest.mark.parametrize("is_link", [False, True], ids=["folder", "link"])
def test_the_environment_is_ignored_whether_it_is_a_folder_or_a_link(is_link: bool, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        missing("git is not installed")
    tree, environment = tmp_path / "tree", tmp_path / "environment"
    environment.mkdir()
    (environment / "pyvenv.cfg").touch()
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    shutil.copy(REPOSITORY / ".gitignore", tree)
    if is_link:
        (tree / ".venv").symlink_to(environment)
    else:
        environment.rename(tree / ".venv")
    said = subprocess.run(["git", "status", "--porcelain"], cwd=tree, check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["??", ".gitignore"]
