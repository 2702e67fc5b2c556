"""The Hugging Face Hub as a model registry: a decision is a pull request on the model's card.

The owner of the model merges it, so nothing is on the card that they did not take. A version is a commit, and its
weights' digest is what the Hub itself says of the one file of weights there. There is one open pull request of ours for
the weights: a new decision is a further commit in it, and the same decision none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import urlencode

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import RegistryError
from proctor.domain.hub import DEFAULT_ENDPOINT, HUB_ID, HUB_REVISION, HubAccess
from proctor.domain.problems import quoted, visible
from proctor.domain.registered_version import RegistryKind
from proctor.registry.hub_client import HubClient
from proctor.registry.hub_versions import commit_of
from proctor.registry.model_card import decision_in, with_decision
from proctor.registry.model_registry import VersionGoneError
from proctor.registry.promotion import HeldVersion
from proctor.registry.version_document import held_by
from proctor.registry.version_record import VersionRecord, sha256_of

CARD: Final = "README.md"
_MAIN: Final = "main"
_URI: Final = re.compile(r"(?:hf|huggingface):/{0,2}", re.IGNORECASE)
_PULL_REQUEST: Final = re.compile(r".*/discussions/([0-9]{1,9})")
_SHOWN_DIGITS: Final = 12
#: Pages of open pull requests of our own user that are looked through.
_MAX_PAGES: Final = 20


class HubRegistry:
    """The models of one hub."""

    kind: Final = RegistryKind.HUGGINGFACE

    def __init__(self, uri: str, *, environ: Mapping[str, str] = os.environ) -> None:
        if _URI.fullmatch(uri) is None:
            raise RegistryError(
                f"the registry URI {visible(uri[:200])!r} says more than it may: write hf://, and the hub's address in "
                "HF_ENDPOINT"
            )
        token = environ.get("HF_TOKEN")
        if not token:
            raise RegistryError(
                "decisions go to the Hugging Face Hub as pull requests, which need a token that may open them: set "
                "HF_TOKEN"
            )
        self._client = HubClient(HubAccess(endpoint=environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT, token=token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def ensure_version(self, model_id: str, digest: str) -> str:
        """The commit that `main` is, where its weights are these. None is ever made."""
        commit = commit_of(self._client, _repository(model_id), _MAIN)
        if commit.digest != digest:
            raise RegistryError(
                f"the weights on {_MAIN} of {model_id} are {commit.digest or 'not one file'} and not {digest}, so no "
                "commit is known that was audited: have a trigger ask for it by its commit"
            )
        return commit.sha

    def write_decision(self, event: DecisionEvent, version: str) -> None:
        """Write one decision as what stands of a version; see `write_version`."""
        self.write_version(VersionRecord.of_event(event), version)

    def write_version(self, record: VersionRecord, version: str) -> None:
        """Open a pull request with what stands, or bring the open one up to date; then read it back.

        Raises:
            VersionGoneError: the hub shows no such commit any more.
            RegistryError: the commit has other weights, or the hub holds something else than was written.
        """
        repository = _repository(record.event.model_id)
        self._hold_weights(repository, version, record.event.model_digest)
        if _says(self._card(repository, _MAIN), record, version):
            # The owner has taken it, or somebody wrote the same.
            return
        revision = self._open_request(repository, record)
        if revision is None:
            revision = self._propose(repository, record, version)
        elif not _says(card := self._card(repository, revision), record, version):
            self._commit(repository, revision, with_decision(card, record, version), record, as_pull_request=False)
        if not _says(self._card(repository, revision), record, version):
            raise RegistryError(
                f"the hub at {self._client.url} holds another {CARD} of {repository} at {revision} than was written; "
                "is another writer at work?"
            )

    def held(self, model: str, *, version: str | None = None, alias: str | None = None) -> HeldVersion:
        """What the card at a revision says; the digest of the weights is the Hub's own word on that revision."""
        repository = _repository(model)
        commit = commit_of(self._client, repository, _revision(version or alias or _MAIN))
        said = decision_in(self._card(repository, commit.sha))
        # The decision is of the commit that was audited; merging the card made another of the same weights.
        audited = said.get("version")
        of = audited if isinstance(audited, str) else commit.sha
        return held_by(said, name=repository, version=of, model_digest=commit.digest)

    def _hold_weights(self, repository: str, revision: str, digest: str) -> None:
        commit = commit_of(self._client, repository, _revision(revision))
        if commit.digest != digest:
            raise RegistryError(
                f"{repository} at {revision} has the weights {commit.digest or '(not one file)'}, but the decision is "
                f"of {digest}"
            )

    def _card(self, repository: str, revision: str) -> str:
        return self._client.text(repository, revision, CARD) or ""

    def _open_request(self, repository: str, record: VersionRecord) -> str | None:
        """The revision of our open pull request for these weights; anybody may open one under the same title."""
        user = self._client.json("/api/whoami-v2").get("name")
        if not isinstance(user, str) or not user:
            raise RegistryError(f"the hub at {self._client.url} does not say whose token HF_TOKEN is")
        found: list[int] = []
        for page in range(_MAX_PAGES):
            query = urlencode({"type": "pull_request", "status": "open", "author": user, "p": page})
            said = self._client.json(f"/api/models/{repository}/discussions?{query}")
            listed = said.get("discussions")
            here = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
            found += [int(one["num"]) for one in here if _is_ours(one, user, _title(record))]
            start, count = said.get("start"), said.get("count")
            if not here or not isinstance(start, int) or not isinstance(count, int) or start + len(here) >= count:
                break
        return f"refs/pr/{min(found)}" if found else None

    def _propose(self, repository: str, record: VersionRecord, version: str) -> str:
        card = with_decision(self._card(repository, _MAIN), record, version)
        said = self._commit(repository, _MAIN, card, record, as_pull_request=True)
        match = _PULL_REQUEST.fullmatch(str(said.get("pullRequestUrl")))
        if match is None:
            raise RegistryError(f"the hub at {self._client.url} did not say which pull request it opened")
        return f"refs/pr/{match[1]}"

    def _commit(
        self, repository: str, revision: str, card: str, record: VersionRecord, *, as_pull_request: bool
    ) -> dict[str, Any]:
        return self._client.commit(
            repository,
            revision,
            summary=_title(record),
            description=f"Decision of audit {record.event.audit_id}: {record.event.outcome.value}.",
            files={CARD: card.encode()},
            as_pull_request=as_pull_request,
        )


def _title(record: VersionRecord) -> str:
    return f"Proctor's decision on the weights {sha256_of(record.event.model_digest)[:_SHOWN_DIGITS]}"


def _is_ours(one: dict[str, Any], user: str, title: str) -> bool:
    author = one.get("author")
    return (
        one.get("isPullRequest") is True
        and one.get("status") == "open"
        and one.get("title") == title
        and isinstance(one.get("num"), int)
        and isinstance(author, dict)
        and author.get("name") == user
    )


def _says(card: str, record: VersionRecord, version: str) -> bool:
    return bool(card) and with_decision(card, record, version) == card


def _repository(model_id: str) -> str:
    if not re.fullmatch(HUB_ID, model_id):
        raise RegistryError(f"{quoted(model_id)} names no model of the Hub: a model id there is owner/name")
    return model_id


def _revision(text: str) -> str:
    if not re.fullmatch(HUB_REVISION, text) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
        raise VersionGoneError(f"{quoted(text)} names no revision of a model")
    return text
