"""What every gRPC server of Proctor shares: where it listens, under which certificate, and how it is bound."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from proctor.domain.errors import BadInputError

#: A caller that vanished without a word is noticed after these two together, and gives back its place.
_KEEPALIVE_MS: Final = 60_000
_KEEPALIVE_TIMEOUT_MS: Final = 20_000


class Tls(NamedTuple):
    """PEM files of the server's certificate and key, and of the authority whose clients alone are let in."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


class Address(NamedTuple):
    """Where a server listens; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `host:port`; an IPv6 host stands in brackets.

        Raises:
            BadInputError: when it is of another form.
        """
        host, colon, port = text.rpartition(":")
        bare = host.startswith("[") == host.endswith("]") and (":" not in host or host.startswith("["))
        if not (colon and host and bare and port.isascii() and port.isdigit() and int(port) <= 65_535):
            raise BadInputError(f"--listen is {text[:80]!r}, but must be host:port, e.g. 127.0.0.1:50051")
        return cls(host, int(port))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        bare = self.host.strip("[]")
        return f"[{bare}]:{self.port}" if ":" in bare else f"{bare}:{self.port}"


def server_options(max_message_bytes: int) -> list[tuple[str, int]]:
    """Options of a server that takes messages of a size, and sends any."""
    return [
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        # Two servers on one port would share its callers in silence.
        ("grpc.so_reuseport", 0),
    ]


def bind(server: Any, address: Address, tls: Tls | None) -> Address:
    """Let a server listen, and give the address with its real port.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used.
    """
    credentials = None if tls is None else _credentials(tls)
    try:
        port: int = (
            server.add_insecure_port(str(address))
            if credentials is None
            else server.add_secure_port(str(address), credentials)
        )
    except RuntimeError:
        hint = "is the port taken, and the host this machine's?" if tls is None else "do certificate and key belong?"
        raise BadInputError(f"the server cannot listen on {address}: {hint}") from None
    return address._replace(port=port)


def _credentials(tls: Tls) -> Any:
    pem: dict[Path, bytes] = {}
    for path in (tls.certificate, tls.key, tls.client_authority):
        if path is not None:
            try:
                pem[path] = path.read_bytes()
            except OSError as error:
                raise BadInputError(f"the TLS file {path} cannot be read: {error.strerror}") from None
    authority = None if tls.client_authority is None else pem[tls.client_authority]
    return grpc.ssl_server_credentials(
        [(pem[tls.key], pem[tls.certificate])],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
