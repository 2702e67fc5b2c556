"""A small client of MLflow's model registry over its REST API (/api/2.0/mlflow).

MLflow's own client costs 2.4 s and 156 MiB to import on a 2-core machine (pandas and FastAPI come along), and would
make MLflow a dependency of every registry worker. The registry writer needs a dozen calls and the
reconciler one, which httpx makes as well.
A client on a database URI would also write past the server, without firing its webhooks.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, unquote

import httpx

from proctor.domain.errors import RegistryError
from proctor.domain.host import is_loopback
from proctor.domain.problems import visible
from proctor.domain.url import Url, UrlFault, parts_of, url_of, without_secrets
from proctor.registry.model_registry import RegistryUnavailableError

_TIMEOUT_S = 10.0
_PAGE_SIZE = 200
#: A registry's answer is quoted in messages up to here; it may hold anything.
_QUOTED_CHARACTERS = 300
#: What an answer may have. A page of 200 versions, each with a dozen tags of the 8,000 characters that MLflow lets a
#: tag have in UTF-8, is below it.
MAX_ANSWER_BYTES: Final = 32 << 20
#: What an answer may take in all, however steadily its bytes drip.
MAX_ANSWER_S: Final = 60.0
#: Pages that are asked for: a million model versions. A server that always names a next one is not asked for ever.
MAX_PAGES: Final = 5_000
_RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504})


class RegistryRefusedError(RegistryError):
    """The registry refused a call. `code` is MLflow's error code, e.g. RESOURCE_DOES_NOT_EXIST."""

    def __init__(self, message: str, code: str) -> None:
        self.code = code
        super().__init__(message)


class ModelVersion(NamedTuple):
    """A model version as the registry has it. `aliases` are those of it alone."""

    name: str
    version: str
    tags: dict[str, str]
    aliases: frozenset[str]
    source: str = ""
    run_id: str = ""
    created_ms: int = 0
    """Since 1970; 0 where the registry does not say it."""
    ready: bool = True
    description: str = ""


class Run(NamedTuple):
    """A run, and where its artifacts are."""

    run_id: str
    artifact_uri: str
    tags: dict[str, str]
    active: bool


class Page(NamedTuple):
    """Some versions, and the token of those that come next; empty where none do."""

    versions: tuple[ModelVersion, ...]
    token: str


class Webhook(NamedTuple):
    """A webhook as the registry has it."""

    id: str
    name: str


class MlflowClient:
    """Calls to one MLflow server. Redirects are not followed, so that credentials stay where they belong."""

    def __init__(self, uri: str, *, environ: Mapping[str, str] = os.environ) -> None:
        url, user, password = _url_and_user(uri)
        if url is None or url.scheme not in ("http", "https"):
            raise RegistryError(
                f"the registry URI {visible(without_secrets(uri))!r} is no http or https URL, and no plug-in that is "
                "installed here has its scheme; name an MLflow server, e.g. PROCTOR_REGISTRY_URI=http://127.0.0.1:5000"
            )
        self.uri = url.text.rstrip("/")
        self._http = httpx.Client(
            # Without user and password: httpx logs the URLs that it calls.
            base_url=f"{self.uri}/api/2.0/",
            timeout=_TIMEOUT_S,
            # What is compressed may inflate to a million times its size.
            headers={**_authorisation(environ), "Accept-Encoding": "identity"},
            auth=_basic(user, password, environ),
            # A proxy of the environment is never the way to this machine.
            trust_env=not is_loopback(url.host),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    def create_model(self, name: str, *, tags: Mapping[str, str], description: str) -> None:
        """Register a model; one that exists already is left as it is."""
        try:
            self._call(
                "POST", "registered-models/create", {"name": name, "tags": _pairs(tags), "description": description}
            )
        except RegistryRefusedError as error:
            if error.code != "RESOURCE_ALREADY_EXISTS":
                raise

    def create_version(self, name: str, *, source: str, tags: Mapping[str, str], description: str) -> ModelVersion:
        """Create a model version together with its tags."""
        answer = self._call(
            "POST",
            "model-versions/create",
            {"name": name, "source": source, "tags": _pairs(tags), "description": description},
        )
        return _version(answer["model_version"])

    def version(self, name: str, version: str) -> ModelVersion:
        """One model version, with its tags and aliases."""
        return _version(self._call("GET", "model-versions/get", {"name": name, "version": version})["model_version"])

    def version_by_alias(self, name: str, alias: str) -> ModelVersion:
        """The model version that an alias points at, with its tags and aliases."""
        answer = self._call("GET", "registered-models/alias", {"name": name, "alias": alias})
        # The version in the answer does not name its aliases.
        return self.version(name, str(answer["model_version"]["version"]))

    def versions(self, name: str | None = None) -> Iterator[ModelVersion]:
        """Every version of a model, or of all models."""
        query = {} if name is None else {"filter": "name='" + name.replace("'", "''") + "'"}
        token = ""
        for _ in range(MAX_PAGES):
            page = self._page(query, token)
            yield from page.versions
            if not page.token:
                return
            token = page.token
        raise RegistryError(f"MLflow at {self.uri} has no end of model versions: {MAX_PAGES:,} pages were read")

    def newest(self, token: str = "") -> Page:
        """Versions of all models, those that were created last first; `token` is of the page before."""
        return self._page({"order_by": "creation_timestamp DESC"}, token)

    def _page(self, query: Mapping[str, Any], token: str) -> Page:
        asked = {**query, "max_results": _PAGE_SIZE, **({"page_token": token} if token else {})}
        answer = self._call("GET", "model-versions/search", asked)
        return Page(tuple(map(_version, answer.get("model_versions", ()))), str(answer.get("next_page_token") or ""))

    def set_tag(self, name: str, version: str, key: str, value: str) -> None:
        """Set one tag of a model version."""
        self._call("POST", "model-versions/set-tag", {"name": name, "version": version, "key": key, "value": value})

    def delete_tag(self, name: str, version: str, key: str) -> None:
        """Take away one tag of a model version; none there is fine."""
        try:
            self._call("DELETE", "model-versions/delete-tag", {"name": name, "version": version, "key": key})
        except RegistryRefusedError as error:
            if error.code != "RESOURCE_DOES_NOT_EXIST":
                raise

    def describe(self, name: str, version: str, description: str) -> None:
        """Set the description of a model version."""
        self._call("PATCH", "model-versions/update", {"name": name, "version": version, "description": description})

    def run(self, run_id: str) -> Run | None:
        """A run; None where there is none of this id."""
        try:
            return _run(self._call("GET", "runs/get", {"run_id": run_id})["run"])
        except RegistryRefusedError as error:
            if error.code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                raise
            return None

    def create_run(self, experiment: str, *, name: str, tags: Mapping[str, str], now_ms: int) -> Run:
        """Create a run that has ended, in an experiment of this name, which is created where there is none."""
        created = self._call(
            "POST",
            "runs/create",
            {
                "experiment_id": self._experiment(experiment),
                "start_time": now_ms,
                "run_name": name,
                "tags": _pairs(tags),
            },
        )["run"]
        ended = {"run_id": created["info"]["run_id"], "status": "FINISHED", "end_time": now_ms}
        self._call("POST", "runs/update", ended)
        return _run(created)

    def _experiment(self, name: str) -> str:
        for _ in range(2):
            try:
                found = self._call("GET", "experiments/get-by-name", {"experiment_name": name})
                return str(found["experiment"]["experiment_id"])
            except RegistryRefusedError as error:
                if error.code != "RESOURCE_DOES_NOT_EXIST":
                    raise
            try:
                return str(self._call("POST", "experiments/create", {"name": name})["experiment_id"])
            except RegistryRefusedError as error:
                # Another writer made it meanwhile.
                if error.code != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise RegistryError(f"MLflow at {self.uri} neither has the experiment {name!r} nor takes it")

    def artifact(self, path: str) -> bytes | None:
        """An artifact through the server, by its path below the server's root; None where there is none."""
        status, body = self._send("GET", _artifact(path), None)
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status != HTTPStatus.OK:
            # MLflow 3.17 says of a file that is not there that it does not know what went wrong.
            answer = _json_object(body)
            if status == HTTPStatus.INTERNAL_SERVER_ERROR and answer is not None and "error_code" in answer:
                return None
            raise self._refusal("an artifact", status, body, answer)
        return body

    def put_artifact(self, path: str, content: bytes) -> None:
        """Put an artifact through the server.

        Raises:
            RegistryError: the server does not take any.
        """
        status, body = self._send("PUT", _artifact(path), content)
        if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.NOT_FOUND) and b"serve-artifacts" in body:
            raise RegistryError(f"MLflow at {self.uri} passes no artifacts on (--serve-artifacts)")
        if status != HTTPStatus.OK:
            raise self._refusal("an artifact", status, body, _json_object(body))

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """Point an alias at a version, wherever it pointed before."""
        self._call("POST", "registered-models/alias", {"name": name, "alias": alias, "version": version})

    def delete_alias(self, name: str, alias: str) -> None:
        """Remove an alias; none there is fine."""
        self._call("DELETE", "registered-models/alias", {"name": name, "alias": alias})

    def webhooks(self) -> list[Webhook]:
        """The webhooks that the server sends."""
        found: list[Webhook] = []
        token = ""
        for _ in range(MAX_PAGES):
            answer = self._call("GET", "webhooks", {"page_token": token} if token else {})
            found += [Webhook(str(one["webhook_id"]), str(one["name"])) for one in answer.get("webhooks", ())]
            token = str(answer.get("next_page_token") or "")
            if not token:
                return found
        raise RegistryError(f"MLflow at {self.uri} has no end of webhooks: {MAX_PAGES:,} pages were read")

    def create_webhook(self, name: str, *, url: str, secret: str, events: Sequence[tuple[str, str]]) -> None:
        """Have events, each an entity and an action, be sent to a URL and signed with a secret."""
        asked = [{"entity": entity.upper(), "action": action.upper()} for entity, action in events]
        self._call("POST", "webhooks", {"name": name, "url": url, "secret": secret, "events": asked})

    def delete_webhook(self, webhook_id: str) -> None:
        """Send a webhook no more."""
        self._call("DELETE", f"webhooks/{webhook_id}", {})

    def _call(self, method: str, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = {"params": values} if method == "GET" else {"json": values}
        status, body = self._send(method, f"mlflow/{path}", None, **sent)
        answer = _json_object(body)
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES and answer is not None:
            return answer
        raise self._refusal(path, status, body, answer)

    def _send(self, method: str, path: str, content: bytes | None, **sent: Any) -> tuple[int, bytes]:
        try:
            with self._http.stream(method, path, content=content, **sent) as response:
                return response.status_code, self._body(path, response)
        except httpx.HTTPError as error:
            raise RegistryUnavailableError(
                f"MLflow at {self.uri} cannot be reached ({type(error).__name__}: {visible(str(error))}); check that "
                "`mlflow server` runs there and that PROCTOR_REGISTRY_URI is right"
            ) from None

    def _body(self, path: str, response: httpx.Response) -> bytes:
        """The bytes of an answer as they were sent, counted as they come."""
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise RegistryError(
                f"MLflow at {self.uri} answered {path} in the encoding {_quote(encoding)!r}, which was not asked for; "
                "have the proxy before it send answers as they are"
            )
        deadline_s, body = time.monotonic() + MAX_ANSWER_S, bytearray()
        for piece in response.iter_raw():
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise RegistryError(f"MLflow at {self.uri} answered {path} with more than {MAX_ANSWER_BYTES:,} bytes")
            if time.monotonic() > deadline_s:
                raise RegistryUnavailableError(
                    f"MLflow at {self.uri} did not end its answer to {path} within {MAX_ANSWER_S:g} s"
                )
        return bytes(body)

    def _refusal(self, path: str, status: int, body: bytes, answer: dict[str, Any] | None) -> RegistryError:
        said = f"MLflow at {self.uri} answered {path} with HTTP {status}"
        if status in (401, 403):
            return RegistryError(f"{said}: set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and _PASSWORD")
        if status in _RETRYABLE_STATUS:
            return RegistryUnavailableError(f"{said}: {_quote(body.decode('utf-8', 'replace'))}")
        if answer is None or "error_code" not in answer:
            return RegistryError(f"{said}, which is no answer of MLflow's registry; check PROCTOR_REGISTRY_URI")
        code = str(answer["error_code"])
        return RegistryRefusedError(f"{said}, {_quote(code)}: {_quote(str(answer.get('message', '')))}", code)


class UsesMlflow:
    """What speaks to one MLflow server, and gives its connections back at the end of a `with`."""

    def __init__(self, uri: str) -> None:
        self._client = MlflowClient(uri)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()


def _url_and_user(uri: str) -> tuple[Url | None, str | None, str | None]:
    """Where the server is, and the user name and password before its host; no URL where it cannot be read."""
    try:
        parts = parts_of(uri)
        return url_of(parts._replace(user=None)), *parts.credentials()
    except UrlFault:
        return None, None, None


def _authorisation(environ: Mapping[str, str]) -> dict[str, str]:
    token = environ.get("MLFLOW_TRACKING_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _basic(user: str | None, password: str | None, environ: Mapping[str, str]) -> httpx.BasicAuth | None:
    """Credentials of the URI, or of the environment where no token stands there."""
    if user:
        return httpx.BasicAuth(unquote(user), unquote(password or ""))
    user, password = environ.get("MLFLOW_TRACKING_USERNAME"), environ.get("MLFLOW_TRACKING_PASSWORD")
    return httpx.BasicAuth(user, password) if user and password and not environ.get("MLFLOW_TRACKING_TOKEN") else None


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _quote(text: str) -> str:
    return visible(text[:_QUOTED_CHARACTERS])


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in tags.items()]


def _tags(entity: Mapping[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag.get("value", "") for tag in entity.get("tags", ())}


def _version(entity: Mapping[str, Any]) -> ModelVersion:
    return ModelVersion(
        str(entity["name"]),
        str(entity["version"]),
        _tags(entity),
        frozenset(str(alias) for alias in entity.get("aliases", ())),
        source=str(entity.get("source") or ""),
        run_id=str(entity.get("run_id") or ""),
        created_ms=int(entity.get("creation_timestamp") or 0),
        ready=entity.get("status", "READY") == "READY",
        description=str(entity.get("description") or ""),
    )


def _run(entity: Mapping[str, Any]) -> Run:
    info = entity["info"]
    return Run(
        str(info["run_id"]),
        str(info.get("artifact_uri") or ""),
        _tags(entity.get("data") or {}),
        info.get("lifecycle_stage", "active") == "active",
    )


def _artifact(path: str) -> str:
    return f"mlflow-artifacts/artifacts/{quote(path)}"
