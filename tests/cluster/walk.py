"""docs/kubernetes.md as a script: the commands under each heading, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.cluster.kit import REPOSITORY, Cluster, CommandError

PAGE: Final = REPOSITORY / "docs" / "kubernetes.md"
_SECTION: Final = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_COMMANDS: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Ends what a reader would leave running in a second terminal.
_HEAD: Final = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"


def sections() -> dict[str, list[str]]:
    """Heading → its blocks of commands, in order; those without one are left out."""
    found = {title: _COMMANDS.findall(body) for title, body in _SECTION.findall(PAGE.read_text("utf-8"))}
    return {title: blocks for title, blocks in found.items() if blocks}


def run_block(cluster: Cluster, block: str, *, within_s: float = 480) -> str:
    """Run a block as a reader would, from the root of the repository; returns what it printed.

    Raises:
        CommandError: a command of it failed.
    """
    # A reader's fingers are slower than a port is forwarded.
    script = re.sub(r"^(kubectl .*port-forward.*&)$", r"\1\nuntil (: </dev/tcp/127.0.0.1/8080) 2>/dev/null; do :; done",
                    _HEAD + block, flags=re.MULTILINE)  # fmt: skip
    path = f"{Path(sys.executable).parent}:{cluster.kubectl_folder}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=REPOSITORY, env=cluster.environment | {"PATH": path}, capture_output=True, text=True,
        timeout=within_s, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if ran.returncode != 0:
        raise CommandError(f"{block}\nexit code {ran.returncode}\n{ran.stderr[-3000:]}\n{ran.stdout[-2000:]}")
    return ran.stdout
