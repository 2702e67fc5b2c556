"""A stand-in of the Hugging Face Hub's HTTP API: models with commits, files and pull requests, in memory.

It answers as `huggingface_hub` 2.4 expects it to (a test has that client use it), and no real hub was asked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from huggingface_hub import ModelCard

#: By token.
USERS: Final = {"hf_proctor": "proctor-bot", "hf_other": "somebody"}
_REPO: Final = r"(?P<repo>[\w.-]+/[\w.-]+)"


class Model:
    """A model: its branches, and the pull requests on it."""

    def __init__(self, digest: str, card: str) -> None:
        self.digest = digest
        self.cards = {"main": card}
        self.shas = {"main": _sha(card)}
        self.requests: list[dict[str, Any]] = []
        self.commits = 0

    def revision(self, name: str) -> str | None:
        """The branch that a name or a commit stands for; a commit of before is still shown."""
        return name if name in self.cards else next((one for one, sha in self.shas.items() if sha == name), None)

    def put(self, revision: str, card: str) -> str:
        self.commits += 1
        self.cards[revision] = card
        self.shas[f"before {self.commits}"] = self.shas.get(revision, "")
        self.cards[f"before {self.commits}"] = card
        self.shas[revision] = _sha(f"{card}{self.commits}")
        return self.shas[revision]

    def merge(self, number: int) -> None:
        """What the owner does with a pull request."""
        self.put("main", self.cards[f"refs/pr/{number}"])
        self.requests[number - 1]["status"] = "merged"


class StandInHub:
    """The models of a hub, and where it listens."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}
        self.url = ""
        self.calls: list[str] = []
        self.down = False

    def answer(self, method: str, target: str, token: str, body: bytes) -> tuple[int, bytes]:
        self.calls.append(f"{method} {target}")
        if self.down:
            return 503, b"down"
        parts, user = urlsplit(target), USERS.get(token)
        path, query = parts.path, {key: values[0] for key, values in parse_qs(parts.query).items()}
        if path == "/api/whoami-v2":
            return (200, _json({"type": "user", "name": user})) if user else (401, b"")
        if match := re.fullmatch(rf"/{_REPO}/raw/(?P<revision>[^/]+)/README.md", path):
            card = self._card(match["repo"], unquote(match["revision"]))
            return (404, b"") if card is None else (200, card.encode())
        match = re.fullmatch(rf"/api/models/{_REPO}/(?P<what>revision|commit|discussions)(?:/(?P<rest>[^/]+))?", path)
        model = self.models.get(match["repo"]) if match else None
        if match is None or model is None:
            return 404, _json({"error": "Repository not found"})
        rest = unquote(match["rest"] or "")
        if match["what"] == "revision":
            return self._revision(match["repo"], model, rest)
        if match["what"] == "discussions":
            return 200, _json(_listed(match["repo"], model, query))
        return (401, b"") if user is None else self._commit(match["repo"], model, rest, query, user, body)

    def _card(self, repo: str, revision: str) -> str | None:
        model = self.models.get(repo)
        found = None if model is None else model.revision(revision)
        return None if model is None or found is None else model.cards[found]

    def _revision(self, repo: str, model: Model, revision: str) -> tuple[int, bytes]:
        found = model.revision(revision)
        if found is None:
            return 404, _json({"error": "Invalid rev id"})
        weights = {"rfilename": "model.safetensors", "lfs": {"sha256": model.digest.removeprefix("sha256:")}}
        files = [{"rfilename": "README.md"}, weights]
        return 200, _json({"id": repo, "sha": model.shas[found], "siblings": files, "tags": ["safetensors"]})

    def _commit(
        self, repo: str, model: Model, revision: str, query: dict[str, str], user: str, body: bytes
    ) -> tuple[int, bytes]:
        lines = [json.loads(line) for line in body.splitlines()]
        header, files = lines[0]["value"], [line["value"] for line in lines[1:] if line["key"] == "file"]
        (card,) = [base64.b64decode(one["content"]).decode() for one in files if one["path"] == "README.md"]
        answer: dict[str, Any] = {}
        if query.get("create_pr") == "1":
            number = len(model.requests) + 1
            model.requests.append(
                {
                    "num": number,
                    "title": header["summary"],
                    "author": {"name": user},
                    "createdAt": "2026-11-23T00:00:00.000Z",
                    "status": "open",
                    "isPullRequest": True,
                    "repo": {"name": repo, "type": "model"},
                }
            )
            revision = f"refs/pr/{number}"
            answer["pullRequestUrl"] = f"{self.url}/{repo}/discussions/{number}"
        elif revision not in model.cards:
            return 404, _json({"error": "Invalid rev id"})
        sha = model.put(revision, card)
        return 200, _json({**answer, "success": True, "commitOid": sha, "commitUrl": f"{self.url}/{repo}/commit/{sha}"})


def metadata(card: str) -> dict[str, Any]:
    """A card's metadata, as the client of the Hub's makers reads them."""
    return dict(ModelCard(card).data.to_dict())  # type: ignore[no-untyped-call]


@contextmanager
def stand_in_hub() -> Iterator[StandInHub]:
    """A hub on a free port of this machine."""
    hub = StandInHub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            status, said = hub.answer(self.command, self.path, token, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = _answer

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def _listed(repo: str, model: Model, query: dict[str, str]) -> dict[str, Any]:
    wanted = [one for one in model.requests if query.get("status") in (None, "all", one["status"])]
    wanted = [one for one in wanted if query.get("author") in (None, one["author"]["name"])]
    page = wanted[int(query.get("p", "0")) * 2 :][:2]
    return {"discussions": page, "count": len(wanted), "start": int(query.get("p", "0")) * 2, "repo": repo}


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
