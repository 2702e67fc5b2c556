"""Put a Triton server into this environment: `python -m proctor.localstack.triton_setup`.

It comes out of the `nvidia-pytriton` wheel, which pip downloads and verifies. Only the server and its libraries are
unpacked: pytriton's own Python API is not needed, and installing the wheel would pin numpy below 2 for everybody. The
server's stubs do need that numpy (under numpy 2 they read every string tensor with stride 0), so they get a virtual
environment of their own: numpy 1.26 in front of this environment's packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

import click

from proctor.domain.errors import StackError
from proctor.localstack.triton_server import (
    STAMP_NAME,
    installation_root,
    platform_obstacle,
    python_version,
    stub_environment,
)

WHEEL = "nvidia-pytriton==0.7.0"
WHEEL_SHA256 = "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df"
NUMPY = "numpy==1.26.4"
#: Digests of that wheel for CPython 3.11 and 3.12 on Linux x86-64.
NUMPY_SHA256 = (
    "666dbfb6ec68962c033a450943ded891bed2d54e6755e35e5835d63f4f6931d5",
    "675d61ffbfa78604709862923189bad94014bef562cc35cf61d3a07bba02a7ed",
)
#: The Triton release inside that wheel, as the server itself reports it.
TRITON_VERSION = "2.51.0"

_SERVER = "pytriton/tritonserver/bin/tritonserver"
_DOWNLOAD_TIMEOUT_S = 900


def needed(name: str, version: str) -> bool:
    """Whether a member of the wheel is part of the server for a minor version of Python."""
    if name.endswith("/"):
        return False
    if name.startswith("pytriton/tritonserver/python_backend_stubs/"):
        return name.split("/")[3] == version
    if name.startswith("nvidia_pytriton.libs/libpython"):
        # Only the stub of Python 3.13 loads it.
        return False
    return (
        name.startswith(("pytriton/tritonserver/bin/", "pytriton/tritonserver/backends/", "nvidia_pytriton.libs/"))
        or "/licenses/" in name
    )


def install(root: Path) -> bool:
    """Unpack the server into `root`. Returns whether there was anything to do.

    The folder appears by one rename, so an interrupted run leaves no half of it.

    Raises:
        StackError: the machine cannot run the wheel, or pip cannot get it.
    """
    if reason := platform_obstacle():
        raise StackError(reason)
    stamp = {"wheel": WHEEL, "numpy": NUMPY, "triton": TRITON_VERSION, "python": python_version()}
    if _installed(root) == stamp:
        return False
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".triton-", dir=root.parent) as temporary:
        unpacked = Path(temporary) / "triton"
        wheels = _download(Path(temporary))
        _unpack_server(wheels["nvidia_pytriton"], unpacked)
        _make_environment(wheels["numpy"], stub_environment(unpacked))
        (unpacked / STAMP_NAME).write_text(json.dumps(stamp, indent=1) + "\n", "utf-8")
        if root.exists():
            root.rename(Path(temporary) / "old")
        unpacked.rename(root)
    return True


def _installed(root: Path) -> object:
    try:
        return json.loads((root / STAMP_NAME).read_text("utf-8")) if (root / _SERVER).is_file() else None
    except (OSError, ValueError):
        return None


def _download(folder: Path) -> dict[str, Path]:
    """Let pip fetch the wheels from its own indexes or cache, and check their hashes."""
    requirements = folder / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{digest}" for digest in NUMPY_SHA256)
    requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n{NUMPY} {hashes}\n", "utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", f"--dest={folder}", f"--requirement={requirements}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_DOWNLOAD_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "ERROR" in line] or error.stderr.splitlines()[-1:]
        raise StackError(f"pip could not download {WHEEL} and {NUMPY}: {' '.join(lines)[:500]}") from None
    except subprocess.TimeoutExpired:
        raise StackError(f"pip did not finish downloading {WHEEL} in {_DOWNLOAD_TIMEOUT_S} s; try again") from None
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


def _unpack_server(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if needed(member.filename, python_version()):
                path = Path(archive.extract(member, target))
                if "/bin/" in member.filename or path.name == "triton_python_backend_stub":
                    path.chmod(0o755)
    wheel.unlink()


def _make_environment(numpy_wheel: Path, target: Path) -> None:
    """A virtual environment with numpy, and behind it everything that this environment has."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(target)
    packages = target / "lib" / f"python{python_version()}" / "site-packages"
    with zipfile.ZipFile(numpy_wheel) as archive:
        archive.extractall(packages)
    numpy_wheel.unlink()
    own = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # `addsitedir` and not the bare folder: it also follows that folder's .pth files, as editable installs need.
    lines = [f"import site; site.addsitedir({folder!r})" for folder in sorted(own)]
    (packages / "proctor.pth").write_text("\n".join(lines) + "\n", "utf-8")


def main() -> int:
    """Install, and say in one line what happened. A machine that cannot run Triton is no failure: models are then
    served in process."""
    root = installation_root()
    try:
        done = install(root)
    except StackError as error:
        click.echo(f"Triton: not installed: {error}", err=True)
        return 0 if platform_obstacle() else 1
    except OSError as error:
        click.echo(f"Triton: not installed: {error}", err=True)
        return 1
    click.echo(f"Triton {TRITON_VERSION}: {'installed' if done else 'already'} in {os.path.relpath(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
