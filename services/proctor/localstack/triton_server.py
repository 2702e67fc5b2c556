"""The Triton server of this machine: where it is, why it is not, and the command that serves a model bundle.

The server is the one inside the `nvidia-pytriton` wheel, unpacked by `proctor.localstack.triton_setup` into the
environment, or another one that PROCTOR_TRITON_SERVER names.
"""

from __future__ import annotations

import ctypes.util
import functools
import hashlib
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from proctor.domain.errors import StackError
from proctor.domain.host import LOOPBACK
from proctor.runtime.private import make_folder

#: Path of another `tritonserver` binary, instead of the one in the environment.
SERVER_VARIABLE = "PROCTOR_TRITON_SERVER"
STAMP_NAME = "installed.json"
#: The wheel is built for manylinux_2_35.
MINIMUM_GLIBC = (2, 35)
#: A stub is compiled for one minor version. The wheel has one for 3.13 too, but numpy 1.26, which all of them need,
#: ends at 3.12; Proctor begins at 3.11.
STUB_VERSIONS = ("3.11", "3.12")
SETUP_HINT = f"run: {Path(sys.executable).name} -m proctor.localstack.triton_setup"

_GRPC_PORT = 1
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Triton's Python backend keeps its regions


class TritonInstallation(NamedTuple):
    """A Triton server that can run here. `root` holds the unpacked wheel; None for a server of the user's own."""

    server: Path
    version: str
    root: Path | None
    libpython: Path | None


@dataclass(frozen=True)
class ServiceCommand:
    """A process to start: its arguments, the variables to add to the environment, and what it is."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    version: str


def installation_root() -> Path:
    """Where the environment keeps its Triton server."""
    return Path(sys.prefix) / "share" / "proctor" / "triton"


def python_version() -> str:
    """The interpreter's `major.minor`, by which stubs are named."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def stub_environment(root: Path) -> Path:
    """The virtual environment in which the stubs of the server in `root` run."""
    return root / "environment"


def platform_obstacle() -> str | None:
    """Why the wheel's server cannot run on this machine, in one line with the mend; None when it can."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return f"the Triton wheel runs on Linux x86-64 only, this is {sys.platform} {platform.machine()}"
    glibc = _glibc_version()
    if glibc is None or glibc < MINIMUM_GLIBC:
        found = ".".join(map(str, glibc)) if glibc else "another C library"
        return f"the Triton wheel needs glibc 2.35 or newer (Debian 12, Ubuntu 22.04), this machine has {found}"
    if python_version() not in STUB_VERSIONS:
        return f"the Triton wheel's Python backend works with Python 3.11 and 3.12, this is {python_version()}"
    if libpython() is None:
        name = f"libpython{python_version()}"
        return f"the shared library {name}.so.1.0 is missing; install it, e.g. apt-get install {name}"
    return None


def libpython() -> Path | None:
    """The shared library of this Python: the interpreter's own before the system's of the same minor version."""
    name = f"libpython{python_version()}.so.1.0"
    folders = [sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib"]
    folders += [sysconfig.get_config_var("LIBPL"), f"/usr/lib/{platform.machine()}-linux-gnu"]
    for folder in filter(None, folders):
        if (candidate := Path(folder) / name).is_file():
            return candidate
    # The loader's cache knows places that no list does; it gives a bare name, which needs no search path.
    found = ctypes.util.find_library(f"python{python_version()}")
    return Path(found) if found else None


def obstacle() -> str | None:
    """Why no Triton server can be started here, in one line with the mend; None when one can."""
    if own := os.environ.get(SERVER_VARIABLE):
        if os.access(own, os.X_OK) and Path(own).is_file():
            return None
        return f"{SERVER_VARIABLE} is {own!r}, which is not an executable file; point it to a tritonserver binary"
    if reason := platform_obstacle():
        return reason
    if _stamp(installation_root()) is None:
        return f"the Triton server is not installed in this environment; {SETUP_HINT}"
    return None


def find() -> TritonInstallation | None:
    """The Triton server to use, or None; `obstacle()` then says why."""
    if obstacle() is not None:
        return None
    if own := os.environ.get(SERVER_VARIABLE):
        server = Path(own).absolute()
        return TritonInstallation(server, _own_version(server), None, libpython())
    root = installation_root()
    version = (_stamp(root) or {}).get("triton", "")
    return TritonInstallation(root / "pytriton/tritonserver/bin/tritonserver", version, root, libpython())


class TritonSockets(NamedTuple):
    """Unix sockets of a server that listens on no port: who may reach it is decided by their folder's permissions."""

    grpc: Path
    metrics: Path

    @classmethod
    def within(cls, folder: Path) -> TritonSockets:
        """The sockets in a folder."""
        # To the address that it is given Triton appends a colon and its port.
        return cls(folder / f"g:{_GRPC_PORT}", folder / "metrics")


def triton_command(
    bundle: Path, *, http_port: int, grpc_port: int, metrics_port: int, runtime_dir: Path, host: str = LOOPBACK
) -> ServiceCommand:
    """The command that serves the models of a bundle on loopback, to everybody on this machine.

    Args:
        bundle: folder whose `models/` is a Triton model repository.
        host: where else it listens; Triton asks nobody who he is, so that is for a network that guards it.
        runtime_dir: folder of this one server, to which the backend's files are linked. Shared-memory regions that
            a killed server of the same folder left behind are removed, so two servers must not share it.

    Raises:
        StackError: no Triton server can be started here, or the bundle has no models.
    """
    listening = [
        f"--http-address={host}",
        f"--http-port={http_port}",
        f"--grpc-address={host}",
        f"--grpc-port={grpc_port}",
        f"--metrics-address={host}",
        f"--metrics-port={metrics_port}",
    ]
    return _command(bundle, listening, runtime_dir)


def triton_command_on_sockets(bundle: Path, sockets: TritonSockets, *, runtime_dir: Path) -> ServiceCommand:
    """The same on Unix sockets alone. They must not be there when it starts.

    Triton's own way to ask for a secret (`--grpc-restricted-protocol`) has it on the command line, which anybody on
    the machine can read, and covers no metrics.
    """
    listening = [
        "--allow-http=false",
        f"--grpc-address=unix:{str(sockets.grpc).removesuffix(f':{_GRPC_PORT}')}",
        f"--grpc-port={_GRPC_PORT}",
        f"--metrics-address=unix:{sockets.metrics}",
    ]
    return _command(bundle, listening, runtime_dir)


def _command(bundle: Path, listening: list[str], runtime_dir: Path) -> ServiceCommand:
    installation = find()
    if installation is None:
        raise StackError(f"Triton cannot be started: {obstacle()}")
    repository = (bundle / "models").absolute()
    if not any(repository.glob("*/config.pbtxt")):
        raise StackError(
            f"{repository} is not a Triton model repository: no model in it has a config.pbtxt; "
            f"write them with: python -m proctor.inference.reference.triton_repository {bundle}"
        )
    runtime_dir = runtime_dir.absolute()
    make_folder(runtime_dir)
    region = "proctor_" + hashlib.sha256(str(runtime_dir).encode()).hexdigest()[:12]
    _remove_stale_regions(region)
    argv = [
        # Before anything else: the regions are everybody's to read otherwise.
        *(sys.executable, "-I", str(Path(__file__).with_name("private_exec.py"))),
        str(installation.server),
        f"--model-repository={repository}",
        "--model-control-mode=none",
        # The configurations are complete; completing them would start every stub, and import torch, twice.
        "--disable-auto-complete-config",
        f"--backend-config=python,shm-region-prefix-name={region}",
        *listening,
        f"--allow-gpu-metrics={'true' if Path('/dev/nvidiactl').exists() else 'false'}",
        "--exit-timeout-secs=5",
        "--log-info=false",
    ]
    if installation.root is not None:
        argv.append(f"--backend-directory={_link_backends(installation.root, runtime_dir)}")
    version = f"Triton {installation.version}".strip()
    return ServiceCommand(tuple(argv), _environment(installation), version)


def _environment(installation: TritonInstallation) -> dict[str, str]:
    """Variables through which the stub, an embedded Python, finds its packages: the first python3 on PATH is it."""
    prefix = str(stub_environment(installation.root)) if installation.root is not None else sys.prefix
    environment = {
        "PATH": os.pathsep.join([str(Path(prefix) / "bin"), os.environ.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": prefix,
        # The models are tiny and each has its process: more threads would only fight over the cores.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if installation.libpython is not None and installation.libpython.is_absolute():
        folder = str(installation.libpython.parent)
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
    return environment


def _link_backends(root: Path, runtime_dir: Path) -> Path:
    """Lay out the backend directory by links: the stub finds its libraries relative to its real place.

    The Proctor package is linked as well: the stub ignores PYTHONPATH, but searches this folder for imports.
    """
    server = root / "pytriton/tritonserver"
    files = [
        server / "backends/python/libtriton_python.so",
        server / "backends/python/triton_python_backend_utils.py",
        server / "python_backend_stubs" / python_version() / "triton_python_backend_stub",
        Path(__file__).resolve().parents[1],
    ]
    folder = runtime_dir / "backends" / "python"
    make_folder(folder)
    for file in files:
        link = folder / file.name
        link.unlink(missing_ok=True)
        link.symlink_to(file)
    return folder.parent


def _remove_stale_regions(prefix: str) -> None:
    for region in _SHARED_MEMORY.glob(f"{prefix}*"):
        region.unlink(missing_ok=True)


def _stamp(root: Path) -> dict[str, str] | None:
    try:
        stamp = json.loads((root / STAMP_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    # An environment that was moved to another minor version of Python needs another stub.
    return stamp if isinstance(stamp, dict) and stamp.get("python") == python_version() else None


def _own_version(server: Path) -> str:
    """The version of a server of the user's own: NVIDIA's images keep it in a file beside `bin/`."""
    try:
        return (server.resolve().parents[1] / "TRITON_VERSION").read_text("utf-8").strip()[:32]
    except (OSError, IndexError):
        return "(version unknown)"


@functools.cache
def _glibc_version() -> tuple[int, int] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
        return (int(major), int(minor)) if name == "glibc" else None
    except (ValueError, OSError):
        return None
