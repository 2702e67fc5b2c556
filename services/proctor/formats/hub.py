"""Datasets of the Hugging Face Hub, at a pinned commit: its files are fetched as data, counted and checked.

Without the package `datasets`: it takes an id for a folder of this machine, a packaged builder or a loading script as
readily as for a repository. Here an id is a part of the hub's address and nothing else. Nothing is kept: a file whose
name is chosen elsewhere would be one more thing to bound.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import quote, urljoin

import httpx

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.hub import DEFAULT_ENDPOINT, HubAccess
from proctor.domain.suite import DatasetSection
from proctor.domain.url import Place, UrlFault, parts_of
from proctor.domain.url import shown as shown_url
from proctor.formats.faults import shown
from proctor.formats.hub_tree import HubFile, files_of_split, listed_file
from proctor.formats.meter import MAX_BYTES

#: Of all the files of a split, as they come.
MAX_HUB_BYTES: Final = MAX_BYTES
#: Files of a split, and of a repository.
MAX_SPLIT_FILES: Final = 256
MAX_LISTED_FILES: Final = 20_000
#: Of one page of the listing, which has a thousand files.
MAX_LISTING_BYTES: Final = 4 << 20
#: For everything, however slowly it comes.
MAX_SECONDS: Final = 900.0
_MAX_REDIRECTS: Final = 3
_TIMEOUT: Final = httpx.Timeout(30.0)
_CHUNK_BYTES: Final = 1 << 16
_MEND: Final = "download the file and name it in dataset_config.path"


@contextmanager
def hub_files(section: DatasetSection, access: HubAccess) -> Iterator[list[Path]]:
    """The files of a hub dataset's split in a folder of our own, for as long as the context lasts.

    No code of the dataset is run, and no file of this machine is read under its name.

    Raises:
        BadInputError: when the operator does not let suites read the dataset, the hub has no such dataset, commit or
            split, or it is larger than what is read.
        ProctorError: when the hub cannot be reached, or sends something else than it lists.
    """
    assert section.hub_id is not None
    access.check(section.hub_id, section.hub_revision)
    repository = HubRepository(section.hub_id, str(section.hub_revision), access)
    with repository as hub, tempfile.TemporaryDirectory(prefix="proctor-hub-") as folder:
        files = files_of_split(hub.files(), section)
        if len(files) > MAX_SPLIT_FILES or sum(file.size for file in files) > MAX_HUB_BYTES:
            raise BadInputError(
                f"the split {section.split!r} of the dataset {section.hub_id!r} has {len(files)} files of "
                f"{sum(file.size for file in files) >> 20} MiB in all; at most {MAX_SPLIT_FILES} of "
                f"{MAX_HUB_BYTES >> 20} MiB are read from the hub"
            )
        paths = [Path(folder, f"{place}{PurePosixPath(file.path).suffix}") for place, file in enumerate(files)]
        for path, file in zip(paths, files, strict=True):
            hub.fetch(file, path)
        yield paths


class _Server(NamedTuple):
    """Which server a URL asks, and as whom."""

    scheme: str
    place: Place
    user: str | None


class HubRepository:
    """One dataset of the hub at one commit.

    Args:
        hub_id: `owner/name`.
        revision: 40 hex digits.
        access: whose hub it is. Whether the dataset may be read is checked by whoever makes this.
        most_bytes: of all files that are fetched.
        mend: what to do where the hub is no help.

    Raises:
        ProctorError: when the hub's address is none.
    """

    def __init__(
        self, hub_id: str, revision: str, access: HubAccess, *, most_bytes: int = MAX_HUB_BYTES, mend: str = _MEND
    ) -> None:
        self._name = f"the dataset {hub_id!r} at {revision}"
        self._mend = mend
        self._base = access.endpoint.rstrip("/")
        server = _server(self._base)
        if server is None:
            raise ProctorError(
                f"{self._name} cannot be fetched from the hub: HF_ENDPOINT is {shown_url(self._base)}, and must be a "
                f"URL like {DEFAULT_ENDPOINT}"
            )
        self._server = server
        self._id, self._revision = quote(hub_id), revision
        self._token = access.token
        self._until = time.monotonic() + MAX_SECONDS
        self._left = most_bytes
        # What is not encoded cannot inflate, and what comes is what is counted.
        self._client = httpx.Client(timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"})

    def __enter__(self) -> HubRepository:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def files(self) -> Iterator[HubFile]:
        """All files of the repository, a page of the listing after the other."""
        place = f"{self._base}/api/datasets/{self._id}/tree/{self._revision}"
        url: str | None = f"{place}?recursive=true"
        listed = 0
        while url is not None:
            # A moved repository is another one, which the operator has not allowed.
            with self._get(url, redirects=0) as answer:
                page = self._json(b"".join(self._bytes(answer, MAX_LISTING_BYTES)))
                following = answer.links.get("next", {}).get("url")
            listed += len(page)
            if listed > MAX_LISTED_FILES:
                raise BadInputError(f"{self._name} has more than {MAX_LISTED_FILES:,} files; {self._mend}")
            yield from filter(None, map(listed_file, page))
            url = urljoin(url, following) if following else None
            if url is not None and (not url.startswith(f"{place}?") or not page):
                raise ProctorError(f"{self._name}: the hub's listing goes on elsewhere, at {shown(url)}; {self._mend}")

    def fetch(self, file: HubFile, path: Path) -> None:
        """Write a file, and check that it is the one that the commit has."""
        url = f"{self._base}/datasets/{self._id}/resolve/{self._revision}/{quote(file.path)}"
        digest = (
            hashlib.sha256()
            if len(file.digest) == hashlib.sha256().digest_size * 2
            # How git names a file that is not large.
            else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        )
        with self._get(url, redirects=_MAX_REDIRECTS) as answer, path.open("wb") as stream:
            for piece in self._bytes(answer, min(file.size, self._left)):
                self._left -= len(piece)
                digest.update(piece)
                stream.write(piece)
        if digest.hexdigest() != file.digest:
            raise ProctorError(
                f"{self._name}: {shown(file.path)} did not come as the commit has it (its digest is another); try "
                f"again, or {self._mend}"
            )

    @contextmanager
    def _get(self, url: str, *, redirects: int) -> Iterator[httpx.Response]:
        for _ in range(redirects + 1):
            there = _server(url)
            # The token is the hub's alone, and what a hub on https sends elsewhere stays on https.
            is_hub = there == self._server
            if there is None or there.scheme != self._server.scheme or (not is_hub and there.user is not None):
                raise ProctorError(f"{self._name}: the hub leads to {shown(url)}, which is not followed; {self._mend}")
            headers = {"Authorization": f"Bearer {self._token}"} if self._token and is_hub else {}
            try:
                with self._client.stream("GET", url, headers=headers) as answer:
                    if not answer.is_redirect:
                        self._check_status(answer)
                        yield answer
                        return
                    url = urljoin(url, answer.headers.get("Location", ""))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ProctorError(
                    f"{self._name} cannot be fetched from the hub ({shown(str(error) or type(error).__name__)[1:-1]}): "
                    f"check the connection and HF_ENDPOINT, or {self._mend}"
                ) from None
        raise BadInputError(f"{self._name} has moved to {shown(url)}; name it as it is called now")

    def _check_status(self, answer: httpx.Response) -> None:
        if answer.status_code in (401, 403, 404):
            raise BadInputError(
                f"{self._name} is not on the hub, or not for everybody (status {answer.status_code}): check hub_id and "
                f"hub_revision, and HF_TOKEN where it is private or gated; or {self._mend}"
            )
        if answer.status_code != httpx.codes.OK:
            raise ProctorError(f"{self._name}: the hub answers with status {answer.status_code}; try again later")
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProctorError(f"{self._name}: the hub sends an encoded answer, which was not asked for; {self._mend}")

    def _bytes(self, answer: httpx.Response, most: int) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            BadInputError: when it is longer than the most.
        """
        came = 0
        for piece in answer.iter_raw(_CHUNK_BYTES):
            came += len(piece)
            if came > most:
                raise BadInputError(f"{self._name}: the hub sends more than the {most:,} bytes that were to come")
            if time.monotonic() > self._until:
                self._too_slow()
            yield piece

    def _too_slow(self) -> NoReturn:
        raise ProctorError(f"{self._name} is not here after {MAX_SECONDS:g} s; {self._mend}")

    def _json(self, body: bytes) -> list[Any]:
        try:
            page = json.loads(body)
        except (ValueError, RecursionError):
            page = None
        if not isinstance(page, list):
            raise ProctorError(f"{self._name}: the hub's listing is no JSON list; is HF_ENDPOINT a hub?")
        return page


def _server(url: str) -> _Server | None:
    """Whom a URL asks; None where readers could disagree on it. Its path and query are the hub's own affair."""
    try:
        parts = parts_of(url, most_characters=None)
        return _Server(parts.scheme, parts.place(), parts.user)
    except UrlFault:
        return None
