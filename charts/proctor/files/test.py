"""`helm test`: audits both reference models through the gateway, and reads from the registry what was written there.

The clean model is to be approved and the one that has memorised items is to be blocked: anything else fails the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from proctor.cli.demo import demo_suite
from proctor.cli.terminal import say
from proctor.runtime.settings import default_bundle

#: The exit code of `proctor audit submit --watch`, the decision in the registry, and the aliases of the version.
EXPECTED = {"reference-clean": (0, "approve", {"proctor-approved"}), "reference-leaked": (4, "block", set())}
#: The registry is written after the decision, which is what the command waits for.
REGISTRY_S = 60.0


def main() -> int:
    """Audit both models side by side; 0 when each gets the decision that it should."""
    with tempfile.TemporaryDirectory() as folder:
        audits = {name: begin(name, Path(folder)) for name in EXPECTED}
        faults = [fault for name, audit in audits.items() for fault in judge(name, audit)]
    for fault in faults:
        say(f"FAILED: {fault}")
    return 1 if faults else 0


def begin(name: str, folder: Path) -> subprocess.Popen[str]:
    """An audit of a reference model on the pool that is tested, as a process that ends with its decision."""
    suite = json.loads(demo_suite(name, default_bundle()))
    suite["model_config"]["endpoint"] = os.environ["PROCTOR_TEST_POOL"]
    file = folder / f"{name}.json"
    file.write_text(json.dumps(suite), "utf-8")
    command = ["proctor", "audit", "submit", str(file), "--watch", "--format", "json"]
    say(f"auditing {name}")
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def judge(name: str, audit: subprocess.Popen[str]) -> list[str]:
    """What is wrong with the end of an audit, and with what the registry says of it."""
    code, decision, aliases = EXPECTED[name]
    told = audit.communicate()[0].strip().splitlines()
    say(f"{name}: exit code {audit.returncode}")
    if audit.returncode != code:
        last = told[-1] if told else "it said nothing"
        return [f"{name} ended with exit code {audit.returncode}, not {code}: {last}"]
    uri = os.environ.get("PROCTOR_REGISTRY_URI", "")
    if not uri.startswith("http"):
        say(f"{name}: the registry is none whose interface this test knows")
        return []
    end = time.monotonic() + REGISTRY_S
    while True:
        found = written(uri, name)
        if found == (decision, aliases):
            say(f"{name}: {decision}, with the aliases {sorted(aliases)} in the registry")
            return []
        if time.monotonic() > end:
            return [f"{name} has {found} in the registry, not {(decision, aliases)}"]
        time.sleep(1.0)


def written(uri: str, name: str) -> tuple[str | None, set[str]]:
    """The decision in the tags of a model's newest version, and Proctor's aliases of that version."""
    model = asked(uri, "registered-models/get", name=name).get("registered_model", {})
    found = asked(uri, "model-versions/search", filter=f"name='{name}'", max_results="200")
    versions = found.get("model_versions", [])
    if not versions:
        return None, set()
    newest = max(versions, key=lambda one: int(one["version"]))
    tags = {tag["key"]: tag["value"] for tag in newest.get("tags", [])}
    aliases = {
        one["alias"]
        for one in model.get("aliases", [])
        if one["version"] == newest["version"] and one["alias"].startswith("proctor-")
    }
    return tags.get("proctor.decision"), aliases


def asked(uri: str, path: str, **parameters: str) -> dict[str, Any]:
    """What MLflow's interface answers; nothing where it knows no such model."""
    answer = httpx.get(f"{uri.rstrip('/')}/api/2.0/mlflow/{path}", params=parameters, timeout=10.0)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return {}
    return dict(answer.raise_for_status().json())


if __name__ == "__main__":
    sys.exit(main())
