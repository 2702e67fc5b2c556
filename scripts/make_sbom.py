"""Write a software bill of materials for each image, in CycloneDX 1.6: dist/sbom/IMAGE.cdx.json.

    python scripts/make_sbom.py [IMAGE …] [--folder dist/sbom]

Made from what the image installs (services/images/requirements), with the hashes that pip checks. The same input gives
the same bytes: no time and no random serial number stand in it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from supply_chain.images import IMAGES, REPOSITORY, lock_of


def bill(image: str) -> bytes:
    """The document of an image, validated against CycloneDX's own schema."""
    run = subprocess.run(
        [
            sys.executable, "-m", "cyclonedx_py", "requirements", "--pyproject", str(REPOSITORY / "pyproject.toml"),
            "--spec-version", "1.6", "--output-format", "JSON", "--output-reproducible", "--validate",
            str(lock_of(image)),
        ],
        capture_output=True,
    )  # fmt: skip
    if run.returncode != 0:
        sys.exit(f"no bill of materials of {image}: {run.stderr.decode('utf-8', 'replace').strip()}")
    return run.stdout


def main() -> int:
    """Write the documents and name them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="*", help=f"of {', '.join(IMAGES)}; all by default")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "dist" / "sbom")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.images) - set(IMAGES)):
        parser.error(f"there is no image {unknown[0]}; there are {', '.join(IMAGES)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for image in arguments.images or IMAGES:
        path = arguments.folder / f"{image}.cdx.json"
        path.write_bytes(bill(image))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
