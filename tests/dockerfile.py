"""The Dockerfile of the images as data: its stages, and what a target is made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.support import REPOSITORY

DOCKERFILE: Final = REPOSITORY / "services" / "images" / "Dockerfile"
_FROM: Final = re.compile(r"FROM (?P<base>\S+)(?: AS (?P<name>\S+))?", re.IGNORECASE)
_COPIED: Final = re.compile(r"COPY (?P<options>(?:--\S+ )*)(?P<paths>.+)")
#: Bytecode is not part of what is copied (.dockerignore).
_LEFT_OUT: Final = "__pycache__"


class Stage(NamedTuple):
    """One stage, its instructions with lines joined and comments left out."""

    name: str
    base: str
    instructions: tuple[str, ...]


def stages(text: str) -> dict[str, Stage]:
    """The named stages of a Dockerfile, in its order."""
    found: dict[str, Stage] = {}
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    name = base = ""
    instructions: list[str] = []
    for line in ["", *re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines(), "FROM end"]:
        if match := _FROM.match(line):
            if name:
                found[name] = Stage(name, base, tuple(instructions))
            name, base, instructions = match["name"] or "", match["base"], []
        elif line.strip():
            instructions.append(line.strip())
    return found


def parts_of(target: str, known: Mapping[str, Stage]) -> dict[str, Stage]:
    """The stages that a target's image is made from, itself included, the earliest first."""
    stage, parts = known[target], dict[str, Stage]()
    others = [re.findall(r"--from=(\S+)", instruction) for instruction in stage.instructions]
    for other in [stage.base, *(name for names in others for name in names)]:
        if other in known:
            parts |= parts_of(other, known)
    return parts | {target: stage}


def sources_of(stage: Stage) -> list[str]:
    """The paths in the repository that a stage copies."""
    copied = [match for instruction in stage.instructions if (match := _COPIED.match(instruction))]
    return [path for match in copied if "--from" not in match["options"] for path in match["paths"].split()[:-1]]


def fingerprint(target: str, *, dockerfile: Path = DOCKERFILE, context: Path = REPOSITORY, besides: str = "") -> str:
    """A digest over all that goes into a target: the instructions of its stages, and the files that they copy.

    Args:
        besides: what else decides, such as the base image and arguments of the build.
    """
    digest = hashlib.sha256(besides.encode())
    for stage in parts_of(target, stages(dockerfile.read_text("utf-8"))).values():
        digest.update(repr(stage).encode())
        for pattern in sources_of(stage):
            for file in sorted(_files(context, pattern)):
                digest.update(f"\n{file.relative_to(context)} {file.stat().st_mode:o} ".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(context: Path, pattern: str) -> set[Path]:
    found = [inner for path in context.glob(pattern) for inner in (path.rglob("*") if path.is_dir() else [path])]
    return {path for path in found if path.is_file() and _LEFT_OUT not in path.parts}
