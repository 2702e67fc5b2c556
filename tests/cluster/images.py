"""The images of a test cluster: built where something changed, loaded where the cluster lacks them.

The kit builds (pip's settings of this machine reach the build by it) into a folder of this module's own, which outlives
the cluster. What was built is kept as one OCI layout, in which images share their layers; of it, only what the cluster
does not have is handed over.

    python -m tests.cluster.images --kit KIT --cluster DIR --cache DIR [TARGET ...]
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from proctor import __version__
from tests.dockerfile import DOCKERFILE, fingerprint, stages
from tests.support import REPOSITORY

BASE: Final = "python:3.11-slim-bookworm"
#: What an audit in a cluster needs; Prometheus is for the tests of metrics alone.
TARGETS: Final = (
    *("router", "scorer", "registry", "gateway", "inference", "perturbation", "notifier"),
    *("triton", "valkey", "postgresql", "mlflow", "prometheus"),
)
#: torch by pip's own configuration: the kit's machine need not reach PyTorch's index.
ARGUMENTS: Final = ("TORCH_INDEX=",)
_BLOBS: Final = Path("blobs", "sha256")
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_NAME: Final = "org.opencontainers.image.ref.name"


class _Built(NamedTuple):
    """An image as the layout has it."""

    name: str
    descriptor: dict[str, Any]
    blobs: frozenset[str]


def ensure_images(kit: Path, cluster_dir: Path, targets: Sequence[str], *, cache: Path) -> dict[str, str]:
    """Have images of the sources as they are in a cluster of the kit.

    Args:
        kit: the kit's program.
        cluster_dir: folder of the cluster, which must be up.
        targets: stages of the Dockerfile; one that it lacks is a KeyError.
        cache: folder for what is built, which may serve several clusters, one after the other or at once.

    Returns:
        Target → the reference by which a pod names it.

    Raises:
        subprocess.CalledProcessError: a build or the import failed; what was said is on stderr.
    """
    known = stages(DOCKERFILE.read_text("utf-8"))
    if unknown := [target for target in targets if target not in known]:
        raise KeyError(f"no target of {DOCKERFILE.name}: {', '.join(unknown)}")
    cache.mkdir(parents=True, exist_ok=True)
    with _held(cache / "lock"):
        images = _Images(kit, cache)
        built = [images.built(target) for target in dict.fromkeys(targets)]
        images.forget_what_nothing_uses()
        _load(kit, cluster_dir, images.layout, built)
    return {target: _reference(target) for target in targets}


def _reference(target: str) -> str:
    return f"proctor/{target}:{__version__}"


class _Images:
    def __init__(self, kit: Path, cache: Path) -> None:
        self._kit = kit
        self._builder = cache / "builder"
        self._record = cache / "images.json"
        self.layout = cache / "layout"
        # Of a cluster that was never up there, the kit's folder lacks the one into which its programs' words go.
        (self._builder / "log").mkdir(parents=True, exist_ok=True)
        self._base_id = self._ensure_base(cache / "base.tar")

    def built(self, target: str) -> _Built:
        """A target's image in the layout; built only when something that goes into it changed."""
        reference = _reference(target)
        key = fingerprint(target, besides=f"{self._base_id} {ARGUMENTS}")
        record = _read(self._record, {})
        if record.get(target) != key or self._find(reference) is None:
            began = time.monotonic()
            arguments = [f"--build-arg={argument}" for argument in (f"TARGET={target}", *ARGUMENTS)]
            self._run("build", *arguments, DOCKERFILE, reference, REPOSITORY)
            built_at = time.monotonic()
            self._keep(reference)
            _write(self._record, {**record, target: key})
            _say(f"{reference} built in {built_at - began:.1f} s, kept in {time.monotonic() - built_at:.1f} s")
        found = self._find(reference)
        assert found is not None, f"{reference} is not where it was put"
        return found

    def forget_what_nothing_uses(self) -> None:
        """Remove the layers of images that have since been built anew."""
        used = {blob for entry in self._index() for blob in self._blobs_of(entry)}
        for path in (self.layout / _BLOBS).iterdir():
            if path.name not in used:
                path.unlink()

    def _keep(self, reference: str) -> None:
        """Take an image out of buildah's store, but for the layers that the layout has.

        Through buildah's archive, and not as its OCI layout: that it would compress, which takes longer than the build.
        """
        image = json.loads(self._buildah("inspect", "--type=image", reference))
        blobs = self.layout / _BLOBS
        blobs.mkdir(parents=True, exist_ok=True)
        target = "docker-archive:/dev/stdout:" + image["FromImage"]
        with subprocess.Popen(
            self._buildah_command("push", "--quiet", reference, target), stdout=subprocess.PIPE
        ) as push:
            with tarfile.open(fileobj=push.stdout, mode="r|", bufsize=1 << 20) as archive:
                for member in archive:
                    if member.isfile() and not (blobs / member.name.partition(".")[0]).exists():
                        _store(archive.extractfile(member), member.name, blobs)
            if push.wait():
                raise subprocess.CalledProcessError(push.returncode, push.args)
        config = json.loads((blobs / image["FromImageID"]).read_bytes())
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(blobs / image["FromImageID"], "application/vnd.oci.image.config.v1+json"),
            "layers": [
                _descriptor(blobs / digest.removeprefix("sha256:"), "application/vnd.oci.image.layer.v1.tar")
                for digest in config["rootfs"]["diff_ids"]
            ],
        }
        text = json.dumps(manifest).encode()
        path = blobs / hashlib.sha256(text).hexdigest()
        path.write_bytes(text)
        entry = {**_descriptor(path, _MANIFEST), "annotations": {_NAME: image["FromImage"]}}
        others = [one for one in self._index() if one["annotations"][_NAME] != image["FromImage"]]
        (self.layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        _write(self.layout / "index.json", {"schemaVersion": 2, "manifests": [*others, entry]})

    def _ensure_base(self, rootfs: Path) -> str:
        try:
            return self._id_of(BASE)
        except subprocess.CalledProcessError:
            _say("making the base image, once")
            self._run("image-base", "--tag", BASE, "--rootfs", rootfs)
            return self._id_of(BASE)

    def _id_of(self, reference: str) -> str:
        identity: str = json.loads(self._buildah("inspect", "--type=image", reference, silent=True))["FromImageID"]
        return identity

    def _index(self) -> list[dict[str, Any]]:
        manifests: list[dict[str, Any]] = _read(self.layout / "index.json", {}).get("manifests", [])
        return manifests

    def _find(self, reference: str) -> _Built | None:
        for entry in self._index():
            name = entry["annotations"][_NAME]
            if name.endswith(f"/{reference}"):
                return _Built(name, entry, frozenset(self._blobs_of(entry)))
        return None

    def _blobs_of(self, entry: dict[str, Any]) -> Iterator[str]:
        digest = _hex(entry)
        manifest = _read(self.layout / _BLOBS / digest, {})
        yield digest
        yield from (_hex(part) for part in (manifest["config"], *manifest["layers"]))

    def _run(self, command: str, *arguments: str | Path) -> None:
        subprocess.run([self._kit, command, "--dir", self._builder, *arguments], check=True, stdout=sys.stderr)

    def _buildah(self, *arguments: str | Path, silent: bool = False) -> str:
        errors = subprocess.DEVNULL if silent else None
        command = self._buildah_command(*arguments)
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=errors).stdout

    def _buildah_command(self, *arguments: str | Path) -> list[str | Path]:
        # As the kit calls it: what it mounts goes with it, whatever happens.
        command = ["unshare", "--mount", "--propagation", "private", "buildah", "--storage-driver", "overlay"]
        return [*command, f"--root={self._builder}/buildah", f"--runroot={self._builder}/run/buildah", *arguments]


def _store(source: IO[bytes] | None, name: str, blobs: Path) -> None:
    """Keep a file of an archive under its digest, where its name is that digest: a layer or a configuration."""
    digest, _, kind = name.partition(".")
    if source is None or kind not in ("tar", "json") or not re.fullmatch("[0-9a-f]{64}", digest):
        return
    fresh, found = blobs / f"{digest}.new", hashlib.sha256()
    with fresh.open("wb") as file:
        while chunk := source.read(1 << 20):
            found.update(chunk)
            file.write(chunk)
    assert found.hexdigest() == digest, f"{name} is not what its name says"
    fresh.replace(blobs / digest)


def _descriptor(blob: Path, kind: str) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{blob.name}", "size": blob.stat().st_size}


def _load(kit: Path, cluster_dir: Path, layout: Path, built: Sequence[_Built]) -> None:
    """Hand a cluster the images that it lacks, without the layers that it has."""
    began = time.monotonic()
    present = set(_ctr(kit, cluster_dir, "images", "list").splitlines())
    lacking = [image for image in built if not any(_same(line, image) for line in present)]
    if not lacking:
        return
    blobs = {blob for image in lacking for blob in image.blobs}
    # Never the manifests: an import reads them from what it is given.
    manifests = {_hex(image.descriptor) for image in lacking}
    blobs -= set(_ctr(kit, cluster_dir, "content", "list", "--quiet").replace("sha256:", "").split()) - manifests
    archive = cluster_dir / "images" / "load.tar"
    archive.parent.mkdir(parents=True, exist_ok=True)
    index = {"schemaVersion": 2, "manifests": [image.descriptor for image in lacking]}
    (cluster_dir / "images" / "index.json").write_text(json.dumps(index))
    with tarfile.open(archive, "w") as tar:
        tar.add(layout / "oci-layout", "oci-layout")
        tar.add(cluster_dir / "images" / "index.json", "index.json")
        for blob in sorted(blobs):
            tar.add(layout / _BLOBS / blob, str(_BLOBS / blob))
    size = archive.stat().st_size
    try:
        subprocess.run([kit, "load", "--dir", cluster_dir, archive], check=True, stdout=sys.stderr)
    finally:
        archive.unlink()
    _say(f"{len(lacking)} images, {size / 1e6:.0f} MB, loaded in {time.monotonic() - began:.1f} s")


def _same(line: str, image: _Built) -> bool:
    """Whether a line of containerd's list is this very image."""
    return line.startswith(f"{image.name} ") and str(image.descriptor["digest"]) in line


def _ctr(kit: Path, cluster_dir: Path, *arguments: str) -> str:
    programs = os.environ.get("CLUSTER_BIN") or str(cluster_dir / "bin")
    command: list[str | Path] = [kit, "exec", "--dir", cluster_dir, f"{programs}/ctr", "-n", "k8s.io", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def _hex(descriptor: dict[str, Any]) -> str:
    return str(descriptor["digest"]).removeprefix("sha256:")


def _read(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return default


def _write(path: Path, value: Any) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    fresh.replace(path)


def _say(text: str) -> None:
    print(f"[images] {text}", file=sys.stderr, flush=True)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build and load from the command line, and print the references."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", type=Path, required=True, help="the kit's program")
    parser.add_argument("--cluster", type=Path, required=True, help="the folder of a cluster that is up")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for what is built")
    parser.add_argument("targets", nargs="*", default=TARGETS, help="all by default")
    arguments = parser.parse_args()
    paths = [path.absolute() for path in (arguments.kit, arguments.cluster, arguments.cache)]
    for target, reference in ensure_images(paths[0], paths[1], arguments.targets, cache=paths[2]).items():
        print(f"{target} {reference}")


if __name__ == "__main__":
    main()
