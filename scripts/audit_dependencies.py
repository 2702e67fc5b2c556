"""Look what the images install up in a source of advisories, with pip-audit.

    python scripts/audit_dependencies.py [--service pypi|osv]

Exit status 0 where every package was looked up and none has a known vulnerability, 1 where one has, and 3 where the
source could not be reached, or does not know packages: what was not looked up is never called safe.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any, Final, NamedTuple

from supply_chain.images import IMAGES, lock_of

_NOT_AUDITED: Final = 3


class Findings(NamedTuple):
    """What was said of the packages."""

    looked_up: frozenset[str]
    skipped: frozenset[str]
    vulnerable: tuple[str, ...]


def read_findings(documents: list[dict[str, Any]]) -> Findings:
    """What pip-audit's JSON documents say together."""
    looked_up, skipped, vulnerable = set(), set(), set()
    for document in documents:
        for package in document["dependencies"]:
            if "skip_reason" in package:
                skipped.add(package["name"])
                continue
            looked_up.add(package["name"])
            for found in package.get("vulns", []):
                fixed = ", ".join(found.get("fix_versions", [])) or "no release yet"
                vulnerable.add(f"{package['name']} {package['version']}: {found['id']}, mended in {fixed}")
    return Findings(frozenset(looked_up), frozenset(skipped), tuple(sorted(vulnerable)))


def main() -> int:
    """Audit every image's requirements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", choices=["pypi", "osv"], default="pypi", help="where advisories are looked up")
    arguments = parser.parse_args()
    documents = []
    for image in IMAGES:
        run = subprocess.run(
            [
                sys.executable, "-m", "pip_audit", "--vulnerability-service", arguments.service,
                "--requirement", str(lock_of(image)), "--require-hashes", "--disable-pip", "--progress-spinner=off",
                "--format=json",
            ],
            capture_output=True, text=True,
        )  # fmt: skip
        try:
            documents.append(json.loads(run.stdout))
        except ValueError:
            said = run.stderr.strip().splitlines()
            print(f"{image}: not audited: {said[-1] if said else 'pip-audit said nothing'}", file=sys.stderr)
            return _NOT_AUDITED
    findings = read_findings(documents)
    if not findings.looked_up:
        print(f"not audited: the source {arguments.service} knows none of the {len(findings.skipped)} packages")
        return _NOT_AUDITED
    print("\n".join(findings.vulnerable) or "no known vulnerability in what was looked up")
    print(f"{len(findings.looked_up)} packages looked up, {len(findings.skipped)} not", file=sys.stderr)
    if findings.vulnerable:
        return 1
    return _NOT_AUDITED if findings.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
