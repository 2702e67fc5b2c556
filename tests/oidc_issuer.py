"""A small issuer of OpenID Connect with real keys, on loopback: its two documents, and tokens as a test wants them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE: Final = "proctor"
DISCOVERY: Final = "/.well-known/openid-configuration"
_KINDS: Final[dict[str, Any]] = {"RS256": jwt.algorithms.RSAAlgorithm, "ES256": jwt.algorithms.ECAlgorithm}


class Key:
    """A key of the issuer's, by its name."""

    def __init__(self, kid: str, algorithm: str, *, bits: int = 2_048) -> None:
        self.kid, self.algorithm = kid, algorithm
        if algorithm == "RS256":
            self.private: Any = rsa.generate_private_key(65_537, bits)
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()

    def public(self) -> dict[str, Any]:
        """The key as the issuer publishes it."""
        kind = _KINDS.get(self.algorithm, jwt.algorithms.OKPAlgorithm)
        said: dict[str, Any] = kind.to_jwk(self.private.public_key(), as_dict=True)
        return {**said, "kid": self.kid, "use": "sig", "alg": self.algorithm}


class Issuer:
    """What it publishes, and how often it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.rsa, self.ec = Key("rsa-1", "RS256"), Key("ec-1", "ES256")
        self.keys = [self.rsa, self.ec]
        self.asked: list[str] = []
        self.away = False
        self.said: dict[str, bytes] = {}
        """Answers that are others than they should be, by path."""

    def claims(self, **claims: Any) -> dict[str, Any]:
        """Claims of a token that is good; None leaves one out."""
        now = int(time.time())
        usual = {
            "iss": self.url, "aud": AUDIENCE, "sub": "anna@example.org", "iat": now, "exp": now + 600, "groups": ["ml"],
        }  # fmt: skip
        return {name: value for name, value in {**usual, **claims}.items() if value is not None}

    def token(self, key: Key | None = None, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token, signed."""
        by = key or self.rsa
        head = {"kid": by.kid, **(headers or {})}
        return jwt.encode(self.claims(**claims), by.private, by.algorithm, headers=head)

    def rotate(self) -> Key:
        """Sign with a new key, and publish it alone."""
        self.keys = [Key(f"rsa-{len(self.asked) + 2}", "RS256")]
        return self.keys[0]

    def answer(self, path: str) -> bytes | None:
        """The document at a path; None where nothing is."""
        if path in self.said:
            return self.said[path]
        documents = {
            DISCOVERY: {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [key.public() for key in self.keys]},
        }
        return json.dumps(documents[path]).encode() if path in documents else None


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            body = issuer.answer(self.path)
            if issuer.away or body is None:
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
