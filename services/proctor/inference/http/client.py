"""The connections to one HTTP endpoint, and one exchange on them: a request out, a bounded reply back."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx

from proctor.domain.endpoint import EndpointSpec
from proctor.inference.http.address import HttpAddress
from proctor.inference.http.authorities import trusted
from proctor.inference.http.failures import RETRYABLE_STATUSES, ConnectionFailure, HttpReply, not_connected
from proctor.inference.http.no_cookies import NoCookies
from proctor.inference.http.public_place import check_encrypted, peer_check
from proctor.inference.http.reply_bounds import MAX_ERROR_BYTES, bounded_connections, read_body
from proctor.inference.worker.backend import TrialFailure, printable
from proctor.inference.worker.retry import asked_wait_s

_CONNECT_TIMEOUT_S: Final = 5.0
#: Of its Server header, which is printed with a probe.
_SERVER_CHARACTERS: Final = 80


class HttpClient:
    """Connections to an endpoint. Follows no redirect, keeps no cookie, sends the key to it alone."""

    def __init__(self, spec: EndpointSpec, address: HttpAddress, key: str | None) -> None:
        """
        Args:
            spec: the endpoint, for messages.
            address: where it is.
            key: the API key it gets, if any.

        Raises:
            BadInputError: only public addresses are allowed, and the way there is not encrypted.
        """
        self._spec = spec
        self._key = key
        self._host = None if spec.server_name is None else address.host
        # A proxy is for other machines: one that the environment names does not stand before this one. Nor before an
        # endpoint whose address is checked: the proxy would look it up.
        self._trust_env = not address.loopback and not spec.public_only
        if spec.public_only:
            check_encrypted(address.url, encrypted=address.encrypted)
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def send(self, method: str, url: str, body: bytes | None, limit: int) -> HttpReply:
        """One exchange. Of a reply that is an error only the beginning is read.

        Raises:
            TrialFailure: no connection, a broken one, or an answer that is encoded or past a bound.
            EndpointError: only public addresses are allowed, and it has another.
        """
        try:
            client = await self._opened()
            async with client.stream(method, url, content=body, extensions=self._extensions()) as response:
                is_error = response.status_code != 200
                bound = min(limit, MAX_ERROR_BYTES) if is_error else limit
                payload = await read_body(response, bound, self._spec.url, cut=is_error)
                asks = response.status_code in RETRYABLE_STATUSES
                wait_s = asked_wait_s(response.headers, now=time.time()) if asks else None
                server = printable(response.headers.get("server", "")[:_SERVER_CHARACTERS])
                return HttpReply(response.status_code, payload, server, wait_s or 0.0)
        except httpx.ConnectError as error:
            raise ConnectionFailure(not_connected(self._spec.url, error)) from None
        except httpx.TimeoutException:
            raise ConnectionFailure(f"{self._spec.url} did not accept a connection in time") from None
        except httpx.TransportError as error:
            name = type(error).__name__
            raise ConnectionFailure(
                f"the connection to {self._spec.url} broke ({name}): {printable(str(error))}"
            ) from None
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            said = printable(str(error))
            raise TrialFailure(f"{self._spec.url} sent what cannot be read: {said}", retryable=False) from None

    def _extensions(self) -> dict[str, Any]:
        extensions = bounded_connections(self._spec.url, peer_check() if self._spec.public_only else None)
        if self._spec.server_name is not None:
            extensions["sni_hostname"] = self._spec.server_name
        return extensions

    async def _opened(self) -> httpx.AsyncClient:
        if self._client is not None:
            return self._client
        authorities = await trusted()
        # Another request may have been quicker.
        if self._client is None:
            headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            if self._host is not None:
                headers["host"] = self._host
            self._client = httpx.AsyncClient(
                headers=headers,
                follow_redirects=False,
                cookies=NoCookies(),
                trust_env=self._trust_env,
                verify=authorities,
                # Reading has no limit of its own: a model may think for long, and every request has its deadline.
                timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        return self._client
