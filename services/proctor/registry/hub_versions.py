"""What the Hugging Face Hub says of a commit of a model: asked, because nobody signed what its webhook says."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import RegistryError
from proctor.domain.hub import HUB_ID, HUB_REVISION, HubAccess
from proctor.domain.problems import quoted
from proctor.domain.registered_version import MODEL_DIGEST_TAG, RegisteredVersion
from proctor.registry.hub_client import HubClient
from proctor.registry.model_registry import VersionGoneError

#: Of a model's tags on the Hub, which become tags without a value.
_MAX_HUB_TAGS: Final = 100
_WEIGHTS: Final = ".safetensors"


class HubCommit(NamedTuple):
    """A commit of a model."""

    sha: str
    tags: tuple[str, ...]
    digest: str | None
    """Of the one file of weights; None where there is not exactly one."""


def commit_of(client: HubClient, name: str, revision: str) -> HubCommit:
    """The commit that a revision of a model is.

    Raises:
        VersionGoneError: there is none, or it is not shown.
        RegistryUnavailableError: the hub does not answer now.
        RegistryError: it answers with something else.
    """
    said = client.json(f"/api/models/{name}/revision/{revision}?blobs=true")
    sha = said.get("sha")
    if said.get("id") != name or not isinstance(sha, str) or not re.fullmatch(HUB_REVISION, sha):
        raise RegistryError(f"the hub at {client.url} answered for another commit than {name} was asked at")
    hub_tags = said.get("tags")
    names = hub_tags[:_MAX_HUB_TAGS] if isinstance(hub_tags, list) else []
    tags = tuple(tag for tag in names if isinstance(tag, str) and not tag.startswith("proctor."))
    return HubCommit(sha, tags, _digest_of(said.get("siblings")))


class HubVersions:
    """Commits of models on a hub; a `VersionSource`."""

    def __init__(self, access: HubAccess) -> None:
        self._client = HubClient(access)

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def look_up(self, version: RegisteredVersion) -> RegisteredVersion:
        """See `VersionSource`. The digest is that of the one file of weights, where there is one."""
        if not re.fullmatch(HUB_ID, version.name) or not re.fullmatch(HUB_REVISION, version.version):
            raise VersionGoneError(f"{quoted(version.name)} at {quoted(version.version)} names no commit of the hub")
        commit = commit_of(self._client, version.name, version.version)
        if commit.sha != version.version:
            raise RegistryError(
                f"the hub at {self._client.url} answered for another commit than {version.name} was asked at"
            )
        tags = dict.fromkeys(commit.tags, "")
        known = {**tags, MODEL_DIGEST_TAG: commit.digest} if commit.digest is not None else tags
        return version.model_copy(update={"tags": known, "source": f"hf://{version.name}@{version.version}"})


def _digest_of(siblings: Any) -> str | None:
    """The digest of a commit's weights; None where they are not one file, because no digest is of several."""
    files = [one for one in siblings if isinstance(one, dict)] if isinstance(siblings, list) else []
    weights = [one for one in files if str(one.get("rfilename", "")).endswith(_WEIGHTS)]
    large = weights[0].get("lfs") if len(weights) == 1 else None
    digest = f"sha256:{large.get('sha256')}" if isinstance(large, dict) else ""
    return digest if FULL_DIGEST.fullmatch(digest) else None
