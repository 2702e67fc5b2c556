"""The command that puts a program into namespaces of its own, with nothing of the machine but an interpreter."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from proctor.runtime.sandbox.limits import ProgramLimits

#: By which an operator learns what is missing.
INSTALL: Final = "apt-get install bubblewrap (or your distribution's package of it)"
#: Shared libraries stand here; no program does.
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_PACKAGES: Final = ("site-packages", "dist-packages")
#: The one folder that can be written.
_FOLDER: Final = "/tmp"  # noqa: S108, it is the sandbox's own and nobody else's
#: No numbered user of this machine.
_NOBODY: Final = "65534"


def bubblewrap() -> str | None:
    """Where `bwrap` is; None where it is not installed."""
    return shutil.which("bwrap")


def command(bwrap: str, limits: ProgramLimits, program: str) -> list[str]:
    """The command that runs a Python program, given as text, on the standard library alone.

    No network, no processes, users or messages of the machine's, no /proc, /dev, /etc or home; the interpreter and the
    shared libraries can be read, installed packages cannot, and nothing but a small folder in memory can be written.
    Hashing is not randomised, so that a program that depends on it does the same each time.
    """
    python, library = _interpreter()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = [library / version / name for name in _PACKAGES] + [library / "python3" / name for name in _PACKAGES]
    hidden = [*packages, *(Path(place) / "python3" / name for place in _LIBRARIES for name in _PACKAGES)]
    return [
        bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox",
        *(part for place in _LIBRARIES for part in ("--ro-bind-try", place, place)),
        "--ro-bind", str(library), str(library), "--ro-bind", str(python), str(python),
        *(part for place in dict.fromkeys(hidden) if place.is_dir() for part in ("--tmpfs", str(place.resolve()))),
        "--perms", "0700", "--size", str(limits.folder_bytes), "--tmpfs", _FOLDER, "--remount-ro", "/",
        "--chdir", _FOLDER, "--clearenv", "--setenv", "PYTHONHASHSEED", "0",
        str(python), "-S", "-s", "-P", "-B", "-X", "utf8", "-c", program,
    ]  # fmt: skip


def _interpreter() -> tuple[Path, Path]:
    """The interpreter that this process runs on, outside of any virtual environment, and its library's folder."""
    base = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return (base / "bin" / name).resolve(), (base / "lib").resolve()
