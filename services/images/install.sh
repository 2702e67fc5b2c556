#!/bin/sh
# Install wheels into the environment of an image and compile them: `install.sh --requirement FILE ...`, options as pip's.
#
# Nothing is built from source, so that no stage needs a compiler. The bytecode is trusted as it stands: the root of a
# running container is read-only, and whatever copies a layer may change the times that Python would compare.
set -eu
python=/opt/proctor/bin/python
[ -x "$python" ] || python3 -m venv --without-pip /opt/proctor
before=$(mktemp)
HOME=/root pip --python "$python" --disable-pip-version-check install -qq --root-user-action=ignore \
  --only-binary=:all: --no-deps --no-compile "$@"
# What only the developers of these packages use. numpy's own testing module, which others import, reads from its tests.
find /opt/proctor/lib -type d -name tests -not -path '*/numpy/*' -prune -exec rm -r {} +
rm -rf /opt/proctor/lib/python3.11/site-packages/torch/test /opt/proctor/lib/python3.11/site-packages/torch/include
find /opt/proctor/lib -path '*/torch/bin/*' -not -name torch_shm_manager -delete
find /opt/proctor -name '*.py' -newer "$before" >"$before.list"
# Templates of code that some packages carry are no Python that compiles.
"$python" -m compileall -qq -j 0 --invalidation-mode unchecked-hash -i "$before.list" || true
rm "$before" "$before.list"
