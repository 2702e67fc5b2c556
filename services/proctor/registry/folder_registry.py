"""A folder of files as a model registry: for who has no registry server, or keeps models in a file system or in git.

    FOLDER/MODEL/versions/VERSION/version.json     whose weights these are
                                  decision.json    what stands of them
                                  description.md   the same for people
                                  evidence/AUDIT/  suite, report, its digest, attestation
    FOLDER/MODEL/aliases/proctor-approved          the version that was approved last, in one line

A version is called by the first 12 digits of its weights' digest. Each file is written whole or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import RegistryError
from proctor.domain.problems import quoted, visible
from proctor.domain.registered_version import registered_name
from proctor.registry.description import described
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError
from proctor.registry.promotion import HeldVersion
from proctor.registry.version_document import approved_later, document, held_by
from proctor.registry.version_record import VersionRecord, sha256_of
from proctor.runtime.files import write_atomic

APPROVED_ALIAS: Final = "proctor-approved"
_URI: Final = re.compile(r"(?:file|folder)://(?:localhost)?(/[^?#]*)", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,249}")
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_VERSION: Final = re.compile(r"[0-9a-f]{12}")
_DIGITS: Final = 12
#: A person's own description, and a decision, are far below it.
_MAX_BYTES: Final = 4 << 20


class FolderRegistry:
    """The registry in a folder. Writing the same thing twice leaves the same files."""

    #: Triggers know no such registry.
    kind: Final = None

    def __init__(self, uri: str) -> None:
        match = _URI.fullmatch(uri)
        if match is None:
            raise RegistryError(
                f"the registry URI {visible(uri[:200])!r} names no folder: write its path from the root behind three "
                "slashes, e.g. PROCTOR_REGISTRY_URI=file:///srv/models"
            )
        self._folder = Path(unquote(match[1]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""

    def ensure_version(self, model_id: str, digest: str) -> str:
        """The version with these weights; see `ModelRegistry`."""
        if not FULL_DIGEST.fullmatch(digest):
            raise RegistryError(f"{visible(digest[:100])!r} is not a full content hash of the weights")
        version = sha256_of(digest)[:_DIGITS]
        path = self._version(registered_name(model_id), version) / "version.json"
        with self._io():
            if not path.exists():
                write_atomic(path, _json({"model_id": model_id, "model_digest": digest}), private=False)
            self._hold_weights(path, digest)
        return version

    def write_decision(self, event: DecisionEvent, version: str) -> None:
        """Write one decision as what stands of a version; see `write_version`."""
        self.write_version(VersionRecord.of_event(event), version)

    def write_version(self, record: VersionRecord, version: str) -> None:
        """Write what stands: the alias away first where it is no approval, and set last where it is one."""
        name = registered_name(record.event.model_id)
        folder, alias = self._version(name, version), self._alias(name, APPROVED_ALIAS)
        with self._io():
            if not (folder / "version.json").exists():
                raise VersionGoneError(
                    f"version {version} of {name} is not in {self._folder}, so the decision of audit "
                    f"{record.event.audit_id} stands on record alone"
                )
            self._hold_weights(folder / "version.json", record.event.model_digest)
            if not record.approved and _text(alias).strip() == version:
                alias.unlink()
            for audit_id, files in record.files.items():
                for file, content in files.items():
                    _write(self._evidence(folder, audit_id, file), content)
            description = folder / "description.md"
            _write(description, described(_text(description), record, most=_MAX_BYTES // 8).encode())
            _write(folder / "decision.json", _json(document(record, version)))
            if record.approved and self._is_newest(name, alias, version, record.sequence):
                _write(alias, f"{version}\n".encode())

    def held(self, model: str, *, version: str | None = None, alias: str | None = None) -> HeldVersion:
        """What the files say of a version; see `ReadableRegistry`."""
        name = registered_name(model)
        with self._io():
            if alias is not None:
                version = _text(self._alias(name, alias)).strip()
            folder = self._version(name, version or "")
            if not (folder / "version.json").exists():
                raise VersionGoneError(f"{self._folder} has no version {quoted(alias or version or '')} of {name}")
            weights = _object(folder / "version.json").get("model_digest")
            said = _object(folder / "decision.json") if (folder / "decision.json").exists() else {}
        digest = weights if isinstance(weights, str) else None
        return held_by(said, name=name, version=folder.name, model_digest=digest)

    def _is_newest(self, name: str, alias: Path, version: str, sequence: int) -> bool:
        holder = _text(alias).strip()
        if holder == version or not _VERSION.fullmatch(holder):
            return True
        decision = self._version(name, holder) / "decision.json"
        return not (decision.exists() and approved_later(_object(decision), sequence))

    def _version(self, name: str, version: str) -> Path:
        # They become a path: nothing of them may lead elsewhere.
        if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
            raise VersionGoneError(f"{quoted(name)} version {quoted(version)} names nothing in {self._folder}")
        return self._folder / name / "versions" / version

    def _alias(self, name: str, alias: str) -> Path:
        if not _NAME.fullmatch(name) or not _ALIAS.fullmatch(alias):
            raise VersionGoneError(f"{quoted(name)}@{quoted(alias)} names nothing in {self._folder}")
        return self._folder / name / "aliases" / alias

    def _evidence(self, folder: Path, audit_id: str, file: str) -> Path:
        if not _NAME.fullmatch(audit_id) or not _NAME.fullmatch(file):
            raise RegistryError(f"{quoted(audit_id)}/{quoted(file)} is no name for a file of evidence")
        return folder / "evidence" / audit_id / file

    def _hold_weights(self, path: Path, digest: str) -> None:
        if (there := _object(path).get("model_digest")) != digest:
            raise RegistryError(
                f"{path} is of the weights {visible(str(there)[:100])}, but the decision is of {digest}; the folder is "
                "another model's, or somebody changed it"
            )

    @contextmanager
    def _io(self) -> Iterator[None]:
        """The errors of the file system, in a registry's words. A folder that is not mounted is not made."""
        if not self._folder.is_dir():
            raise RegistryUnavailableError(f"the folder {self._folder} of the registry is not there: make or mount it")
        try:
            yield
        except PermissionError as error:
            raise RegistryError(f"the registry's {error.filename} cannot be used: {error.strerror}") from error
        except OSError as error:
            raise RegistryUnavailableError(
                f"the registry's {error.filename or self._folder} cannot be used now: {error.strerror}"
            ) from error


def _write(path: Path, content: bytes) -> None:
    # Left alone where it is the same: a copy, or a commit, has nothing to do then.
    if not path.exists() or path.read_bytes() != content:
        write_atomic(path, content, private=False)


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    if path.stat().st_size > _MAX_BYTES:
        raise RegistryError(f"{path} has more than {_MAX_BYTES:,} bytes")
    return path.read_text("utf-8", "replace")


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"{path} is no JSON object: somebody changed it")
    return found


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
