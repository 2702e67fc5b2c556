"""The evidence of a decision among the artifacts of an MLflow run: the suite, the report, its digest, the attestation.

A version that came out of a run has them there, beside what the run logged. One without a run gets one of its own, in
an experiment of Proctor's, which a tag of the version names: MLflow gives a version no run afterwards. They travel
through the server; where the server does not pass artifacts on (their root is a bucket that only clients reach), the
tag says so, and the decision is written all the same.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import Final

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import RegistryError
from proctor.domain.problems import visible
from proctor.domain.url import UrlFault, parts_of
from proctor.registry.mlflow_client import MlflowClient, ModelVersion, Run
from proctor.registry.model_registry import RegistryUnavailableError
from proctor.registry.version_record import VersionRecord
from proctor.registry.version_tags import EVIDENCE_TAG, RUN_TAG

logger = logging.getLogger(__name__)

EXPERIMENT: Final = "proctor"
#: Of the run that is made for a version; what says that it is this version's.
VERSION_TAG: Final = "proctor.model_version"
FOLDER: Final = "proctor"
#: Ids of audits, and names of files: they become a path on somebody else's machine.
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MAX_TAG_CHARACTERS: Final = 500
_SERVED: Final = "mlflow-artifacts"
_ROUTE: Final = "/api/2.0/mlflow-artifacts/artifacts/"


def lay_down(client: MlflowClient, version: ModelVersion, record: VersionRecord) -> dict[str, str]:
    """Log the evidence with a version, and read it back; the tags that say where it is.

    What is there already, and the same, is left as it is.

    Raises:
        RegistryUnavailableError: the registry cannot be reached now.
    """
    if not record.files:
        return {}
    run = _run_of(client, version)
    linked = {} if run.run_id == version.run_id else {RUN_TAG: run.run_id}
    root = _served_path(run.artifact_uri)
    if root is None:
        where = visible(_scheme(run.artifact_uri)[:40]) or "a folder of its clients"
        return {**linked, EVIDENCE_TAG: f"not logged: the artifacts of run {run.run_id} are in {where}"}
    try:
        for audit_id, files in record.files.items():
            _put(client, f"{root}/{FOLDER}/{audit_id}", files)
    except RegistryUnavailableError:
        raise
    except RegistryError as error:
        # A server of another set-up: a block that is not written for that would be worse.
        logger.warning("the evidence is not logged with version %s of %s: %s", version.version, version.name, error)
        return {**linked, EVIDENCE_TAG: f"not logged: {error}"[:_MAX_TAG_CHARACTERS]}
    return {**linked, EVIDENCE_TAG: f"runs:/{run.run_id}/{FOLDER}"}


def _run_of(client: MlflowClient, version: ModelVersion) -> Run:
    named = f"{version.name}/{version.version}"
    if version.run_id:
        run = client.run(version.run_id)
        if run is not None and run.active:
            return run
    if linked := version.tags.get(RUN_TAG, ""):
        run = client.run(linked)
        # Anyone may write the tag: into a run that is not the version's nothing is logged.
        if run is not None and run.active and run.tags.get(VERSION_TAG) == named:
            return run
    return client.create_run(EXPERIMENT, name=named, tags={VERSION_TAG: named}, now_ms=int(time.time() * 1000))


def _served_path(artifact_uri: str) -> str | None:
    """Where the run's artifacts are below the server's root; None where the server does not pass them on."""
    scheme, path = _scheme(artifact_uri), artifact_uri.partition(":")[2]
    # MLflow's own scheme comes without a host, which no other reader of ours takes.
    if scheme == _SERVED and not path.startswith("//"):
        return path.strip("/")
    try:
        path = parts_of(artifact_uri).path
    except UrlFault:
        return None
    if scheme in ("http", "https") and _ROUTE in path:
        path = path.partition(_ROUTE)[2]
    elif scheme != _SERVED:
        return None
    return path.strip("/")


def _scheme(uri: str) -> str:
    """What stands before the colon; empty where there is none."""
    before, colon, _ = uri.partition(":")
    return before.lower() if colon else ""


def _put(client: MlflowClient, folder: str, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = f"{folder}/{name}"
        if not all(_SAFE_NAME.fullmatch(part) for part in path.rsplit("/", 2)[1:]):
            raise RegistryError(f"{visible(path[-200:])!r} is no name for an artifact")
        if _is_there(client, path, content):
            continue
        client.put_artifact(path, content)
        if not _is_there(client, path, content):
            raise RegistryError(f"MLflow at {client.uri} holds something else than was written as {visible(path)}")


def _is_there(client: MlflowClient, path: str, content: bytes) -> bool:
    found = client.artifact(path)
    return found is not None and bytes_digest(found) == bytes_digest(content)
