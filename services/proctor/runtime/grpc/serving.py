"""What every gRPC server of Proctor shares: where it listens, under which certificate, and how it is bound."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from proctor.domain.errors import BadInputError
from proctor.domain.host import is_loopback, unbracketed
from proctor.domain.url import Place, UrlFault, read_place

#: A caller that vanished without a word is noticed after these two together, and gives back its place.
_KEEPALIVE_MS: Final = 60_000
_KEEPALIVE_TIMEOUT_MS: Final = 20_000


#: Of a call: a token and what proxies add. gRPC's own default, stated so that it stays.
MAX_METADATA_BYTES: Final = 8 << 10
#: A machine's whole list of authorities has a quarter of this.
MAX_PEM_BYTES: Final = 1 << 20
#: A connection that does not come to its first call, and one that has none any more.
_HANDSHAKE_MS: Final = 10_000
_IDLE_MS: Final = 300_000


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
        try:
            place = read_place(text, lowest_port=0)
        except UrlFault:
            place = None
        if place is None or place.port is None:
            raise BadInputError(f"--listen is {text[:80]!r}, but must be host:port, e.g. 127.0.0.1:50051")
        return cls(place.host, place.port)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return Place(unbracketed(self.host), self.port).text


def server_options(max_message_bytes: int, max_calls: int) -> list[tuple[str, int]]:
    """Options of a server that takes messages of a size, and sends any.

    Args:
        max_message_bytes: of one message, as it is once it is inflated.
        max_calls: of one connection.
    """
    return [
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.max_concurrent_streams", max_calls),
        # What a call sends before it is read stays in a window of 64 KiB: a probed one grows to megabytes a call.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.max_connection_idle_ms", _IDLE_MS),
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        # Two servers on one port would share its callers in silence.
        ("grpc.so_reuseport", 0),
    ]


def hold_to_callers(address: Address, tls: Tls | None, *, has_tokens: bool, variable: str, what: str) -> None:
    """Refuse to let other machines call a server that does not ask who they are.

    Args:
        address: where it is to listen.
        tls: its certificates.
        has_tokens: whether callers must show a token.
        variable: which makes them.
        what: what anybody could do else, e.g. `begin and cancel audits`.

    Raises:
        BadInputError: when it neither asks for a token nor for a client's certificate.
    """
    if not (address.loopback or has_tokens or (tls is not None and tls.client_authority is not None)):
        raise BadInputError(
            f"{address} can be reached from other machines, which could {what}: set {variable} to what callers must "
            "show (`proctor gateway token` prints one), let in clients of an authority alone (--client-ca), or listen "
            "on 127.0.0.1"
        )


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


class ClientTls(NamedTuple):
    """PEM files of a client: the authorities that it trusts, and a certificate and key of its own."""

    authority: Path | None = None
    """None trusts those that gRPC comes with."""
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> Any:
        """What a channel is given.

        Raises:
            BadInputError: when a file cannot be read or used.
        """
        pem = checked_pem(self.certificate, self.key, self.authority)
        return grpc.ssl_channel_credentials(
            None if self.authority is None else pem[self.authority],
            None if self.key is None else pem[self.key],
            None if self.certificate is None else pem[self.certificate],
        )


def _credentials(tls: Tls) -> Any:
    pem = checked_pem(tls.certificate, tls.key, tls.client_authority)
    authority = None if tls.client_authority is None else pem[tls.client_authority]
    return grpc.ssl_server_credentials(
        [(pem[tls.key], pem[tls.certificate])],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )


def checked_pem(certificate: Path | None, key: Path | None, authority: Path | None) -> dict[Path, bytes]:
    """The content of PEM files, once it is clear that they can be used: gRPC says so to its log alone."""
    pem: dict[Path, bytes] = {}
    for path in (certificate, key, authority):
        if path is not None:
            try:
                with path.open("rb") as stream:
                    pem[path] = stream.read(MAX_PEM_BYTES + 1)
            except OSError as error:
                raise BadInputError(f"the TLS file {path} cannot be read: {error.strerror}") from None
            if len(pem[path]) > MAX_PEM_BYTES:
                raise BadInputError(
                    f"the TLS file {path} is larger than {MAX_PEM_BYTES >> 20} MiB: is it the right one?"
                )
    if authority is not None:
        try:
            ssl.create_default_context(cadata=pem[authority].decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise BadInputError(f"the TLS file {authority} holds no certificate of an authority in PEM") from None
    if certificate is not None and key is not None:
        try:
            # A key that is locked would be asked for on the terminal.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
        except (ssl.SSLError, ValueError, OSError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise BadInputError(
                f"the TLS files {certificate} and {key} cannot be used ({reason}): both must be PEM, the key without a "
                "password, and belong together"
            ) from None
    return pem
