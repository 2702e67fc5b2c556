"""Write what each image installs, pinned with hashes: services/images/requirements/IMAGE.txt.

    python scripts/lock_dependencies.py [--check]

Versions are those of constraints.txt. An image installs with `pip install --require-hashes --requirement IMAGE.txt` and
then Proctor itself with `--no-deps`, so that nothing gets in that is not in the file. Needs `uv` and the package index.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys

from supply_chain.images import (
    BESIDES,
    CONSTRAINTS,
    FOLDER,
    IMAGES,
    REPOSITORY,
    TORCH,
    TORCH_NOTE,
    Besides,
    lock_of,
    pins_of,
)


def locked(image: str) -> str:
    """The requirements of an image on Linux, with the hashes of their files for every kind of processor."""
    text = _resolved(image, left_out=())
    without = sorted({pin.name for pin in pins_of(text) if TORCH.fullmatch(pin.name)})
    note = TORCH_NOTE if without else ""
    head = (
        f"# What the image {image} installs. Written by scripts/lock_dependencies.py from pyproject.toml and\n"
        f"# constraints.txt; to be installed with pip install --require-hashes.\n{note}"
    )
    return head + (_resolved(image, left_out=without) if without else text)


def _resolved(image: str, left_out: list[str] | tuple[()]) -> str:
    wanted = BESIDES[image] if image in BESIDES else Besides(extras=IMAGES[image])
    sources = ["-"] if wanted.extras is None else ["-", str(REPOSITORY / "pyproject.toml")]
    extras = [f"--extra={name}" for name in wanted.extras or ()]
    without = [f"--no-emit-package={name}" for name in left_out]
    uv = shutil.which("uv") or sys.exit("uv is not installed; run: pip install uv")
    run = subprocess.run(
        [
            uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes",
            "--python-platform=linux", "--python-version=3.11.2", "--no-emit-index-url",
            f"--constraint={CONSTRAINTS}", *extras, *without, *sources,
        ],
        input="\n".join(wanted.requirements), capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        sys.exit(f"uv could not resolve the image {image}:\n{run.stderr.strip()}")
    return run.stdout


def main() -> int:
    """Write the files, or with --check say which are not what they would be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file is out of date")
    arguments = parser.parse_args()
    stale = []
    for image in (*IMAGES, *BESIDES):
        text, path = locked(image), lock_of(image)
        if not path.is_file() or path.read_text() != text:
            stale.append(path.relative_to(REPOSITORY))
            if not arguments.check:
                FOLDER.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        print(f"{image}: {len(pins_of(text))} packages", file=sys.stderr)
    for name in stale:
        print(f"{name} {'is out of date' if arguments.check else 'written'}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
