#!/usr/bin/env python3
"""Render the Kustomize bases of k8s/ from the chart, so that there is one source of what runs.

Each folder of k8s/bases with a values.yaml gets `manifests.yaml`, the chart with those values for a release and a
namespace named proctor, and a `kustomization.yaml`. Helm's hooks are left out of them: tests, and the annotations by
which Helm orders things. A test asserts that what is in the repository is what this writes.

  scripts/render_kustomize_bases.py                                     # after a change to the chart
  scripts/render_kustomize_bases.py --check                             # 1 where a base is not what the chart says
  scripts/render_kustomize_bases.py --secrets k8s/overlays/laptop       # draw the Secrets of a trial, once
"""

from __future__ import annotations

import argparse
import io
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from helm_python.chart import Chart
from helm_python.errors import HelmError

from autoscaling.rendered import CHART, read_yaml, values_of
from proctor.domain.errors import BadInputError, ProctorError

BASES: Final = Path(__file__).parents[1] / "k8s" / "bases"
_NAME: Final = "proctor"
_HOOK: Final = "helm.sh/hook"
_MANAGED: Final = "app.kubernetes.io/managed-by"
_HEAD: Final = "# Written by scripts/render_kustomize_bases.py from charts/proctor and values.yaml. Change those.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bases; 1 where they are checked and differ, 2 for bad input."""
    options = _parse(arguments)
    try:
        if options.secrets:
            _draw(options.secrets)
            return 0
        differ = [path for base in bases(options.bases) for path in _write(base, options)]
    except (ProctorError, OSError) as error:
        print(f"render_kustomize_bases: {error}", file=sys.stderr)
        return 2
    for path in differ:
        print(f"{path} is not what the chart says: run scripts/render_kustomize_bases.py", file=sys.stderr)
    return 1 if differ else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chart", type=Path, default=CHART, metavar="DIR", help="[charts/proctor]")
    parser.add_argument("--bases", type=Path, default=BASES, metavar="DIR", help="[k8s/bases]")
    parser.add_argument("--check", action="store_true", help="write nothing; say what differs")
    parser.add_argument(
        "--secrets", type=Path, metavar="DIR", help="draw a trial's Secrets into DIR/secrets, and no more"
    )
    return parser.parse_args(arguments)


def bases(folder: Path) -> list[Path]:
    """Folders of bases, by name.

    Raises:
        BadInputError: where there is none.
    """
    found = sorted(path.parent for path in folder.glob("*/values.yaml"))
    if not found:
        raise BadInputError(f"{folder}: no folder with a values.yaml")
    return found


def manifests(chart: Path, values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What Kustomize is to have of the chart, in the order of kinds, names and namespaces.

    Raises:
        BadInputError: where the chart refuses the values.
    """
    try:
        with Chart.load(chart) as loaded:
            rendered = loaded.render(values=dict(values), name=_NAME, namespace=_NAME)
    except HelmError as error:
        raise BadInputError(f"{chart}: {error}") from None
    found = [
        kept
        for path, text in rendered.items()
        if path.endswith(".yaml")
        for one in read_yaml(text)
        if isinstance(one, Mapping) and (kept := _without_helm(one)) is not None
    ]
    return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")))


def _without_helm(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A manifest without what only Helm reads; None for a test."""
    annotations = manifest["metadata"].get("annotations") or {}
    if "test" in str(annotations.get(_HOOK, "")).split(","):
        return None
    kept: Mapping[str, Any] = _cleared(manifest)
    return kept


def _cleared(value: Any) -> Any:
    if isinstance(value, Mapping):
        found = {name: _cleared(inner) for name, inner in value.items() if not str(name).startswith("helm.sh/")}
        if found.get(_MANAGED) == "Helm":
            found[_MANAGED] = "kustomize"
        # Annotations of which none is left.
        return {name: inner for name, inner in found.items() if inner != {} or value[name] == {}}
    return [_cleared(one) for one in value] if isinstance(value, list) else value


def documents(base: Path, chart: Path) -> dict[str, str]:
    """Files of a base by their names."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 200
    yaml.explicit_start = True
    text = io.StringIO()
    yaml.dump_all(manifests(chart, values_of(base / "values.yaml")), text)
    kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [manifests.yaml]\n"
    return {"manifests.yaml": _HEAD + text.getvalue(), "kustomization.yaml": _HEAD + kustomization}


def _write(base: Path, options: argparse.Namespace) -> list[Path]:
    """Write a base, or say which of its files differ."""
    differ = []
    for name, text in documents(base, options.chart).items():
        path = base / name
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                differ.append(path)
        else:
            path.write_text(text, encoding="utf-8")
    return differ


def _draw(overlay: Path) -> None:
    """Secrets of a trial, each a file; what is there stays, because volumes are read with it.

    Raises:
        BadInputError: where the folder is none.
    """
    if not (overlay / "kustomization.yaml").is_file():
        raise BadInputError(f"{overlay}: no overlay is there")
    folder = overlay / "secrets"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in trial_secrets().items():
        path = folder / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")


def trial_secrets() -> dict[str, str]:
    """File name to contents, drawn anew: `key=value` lines, and the signing key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    redis, records, registry = (secrets.token_urlsafe(30) for _ in range(3))
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    valkey = f"redis://:{redis}@{_NAME}-valkey.{_NAME}.svc:6379"
    return {
        "valkey.env": f"password={redis}\nbroker-url={valkey}/0\nledger-url={valkey}/1\n",
        "postgresql.env": f"password={records}\n"
        f"records-url=postgresql://proctor:{records}@{_NAME}-postgresql.{_NAME}.svc:5432/proctor\n",
        "mlflow.env": f"password={registry}\nregistry-uri=http://proctor:{registry}@{_NAME}-mlflow.{_NAME}.svc:5000\n",
        "gateway.env": f"token={secrets.token_urlsafe(32)}\n",
        "signing-key.pem": key.decode(),
    }


if __name__ == "__main__":
    sys.exit(main())
