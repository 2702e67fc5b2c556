"""Make the Python stubs of the gRPC services from protos/: `python scripts/generate_protos.py`.

Only the services have stubs: the decision event travels as JSON and needs none. `grpcio-tools` is held at the version
in constraints.txt, because generated code refuses a protobuf that is older than its generator.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

REPOSITORY = Path(__file__).resolve().parents[1]
PROTOS = REPOSITORY / "protos"
#: The package that holds the stubs of each file in protos/proctor/v1.
SERVICES = {"perturbation": "proctor.perturbation.serving.rpc", "audit": "proctor.gateway.rpc"}
#: The compiler takes the file's folder for the Python package, which would lie beside the rooms of Proctor.
_IMPORT = "from proctor.v1 import "


def stubs_of(service: str) -> Path:
    """The folder in the repository that holds a service's stubs."""
    return REPOSITORY / "services" / Path(*SERVICES[service].split("."))


def generate(service: str, folder: Path) -> list[Path]:
    """Write the stubs of a service into a folder, and return them.

    Raises:
        RuntimeError: when the compiler refuses a file; it has said why on standard error.
    """
    source = PROTOS / "proctor" / "v1" / f"{service}.proto"
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    common = files("grpc_tools") / "_proto"
    if protoc.main(["protoc", f"--proto_path={PROTOS}", f"--proto_path={common}", *outputs, str(source)]) != 0:
        raise RuntimeError(f"protoc refused {source}")
    placed = f"from {SERVICES[service]} import "
    made = folder / "proctor" / "v1"
    written: list[Path] = []
    for stub in sorted(made.glob(f"{service}_pb2*")):
        target = folder / stub.name
        target.write_text(stub.read_text(encoding="utf-8").replace(_IMPORT, placed), encoding="utf-8")
        stub.unlink()
        written.append(target)
    made.rmdir()
    made.parent.rmdir()
    return written


def main() -> int:
    """Write the stubs into the package."""
    for service in SERVICES:
        for path in generate(service, stubs_of(service)):
            print(path.relative_to(REPOSITORY))
    return 0


if __name__ == "__main__":
    sys.exit(main())
