#!/usr/bin/env bash
# lm-evaluation-harness, for the test that runs it, in an environment over this one. In the same one it would bring
# `datasets`, which sentence-transformers imports wherever it is installed, with a pandas that is compiled for another
# numpy than the stub of Triton's Python backend has.
set -euo pipefail
cd "$(dirname "$0")/.."
outer=$PWD/.venv
harness=$outer/harness
if [ -x "$harness/bin/lm_eval" ]; then exit 0; fi
"$outer/bin/python" -m venv --without-pip --clear "$harness"
packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
echo "import site; site.addsitedir('$(packages "$outer/bin/python")')" > "$(packages "$harness/bin/python")/outer.pth"
"$outer/bin/python" -m pip --disable-pip-version-check --python "$harness/bin/python" install --quiet \
  --constraint constraints.txt 'lm_eval[api]>=0.4.13'
