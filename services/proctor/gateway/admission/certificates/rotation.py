"""How one certificate follows another without a moment in which the API server would refuse what is served. Pure.

1. A new certificate is made *beside* the one that is served, and its authority joins the bundle of those believed.
2. Once the bundle stands in the webhook's configuration, and API servers had time to see it, the new one is served.
3. An authority leaves the bundle when it is valid no longer, so that a replica that is slow to change is believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from proctor.gateway.admission.certificates.issuing import Issued, authorities_of, ended, issue, names_of

#: Keys of the Secret. The first two are those of `kubernetes.io/tls`.
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITY: Final = "authority.crt"
NEXT_CERTIFICATE: Final = "next.crt"
NEXT_KEY: Final = "next.key"
NEXT_AUTHORITY: Final = "next-authority.crt"
#: Every authority that is to be believed.
BUNDLE: Final = "ca.crt"
#: Since when the bundle with the next one's authority has been in the configuration.
PUBLISHED: Final = "published"
#: Long past what API servers and other replicas take to see what was written.
SETTLES_IN: Final = timedelta(minutes=2)


class Kept(NamedTuple):
    """What the Secret holds."""

    served: Issued | None = None
    next: Issued | None = None
    """To be served after it."""
    bundle: bytes = b""
    published: datetime | None = None

    @classmethod
    def of(cls, data: dict[str, bytes]) -> Kept:
        """From a Secret's data; what is damaged counts as if it were not there, and is made anew."""
        served = _issued(data, AUTHORITY, CERTIFICATE, KEY)
        following = _issued(data, NEXT_AUTHORITY, NEXT_CERTIFICATE, NEXT_KEY)
        try:
            bundle = b"".join(authorities_of(data.get(BUNDLE, b"")))
            published = datetime.fromisoformat(data[PUBLISHED].decode()) if data.get(PUBLISHED) else None
        except ValueError:
            bundle, published = b"", None
        return cls(served, following, bundle, published)

    def data(self) -> dict[str, bytes]:
        """As a Secret's data; empty values take keys away."""
        served, following = self.served or _NOTHING, self.next or _NOTHING
        return {
            CERTIFICATE: served.certificate,
            KEY: served.key,
            AUTHORITY: served.authority,
            NEXT_CERTIFICATE: following.certificate,
            NEXT_KEY: following.key,
            NEXT_AUTHORITY: following.authority,
            BUNDLE: self.bundle,
            PUBLISHED: b"" if self.published is None else self.published.isoformat().encode(),
        }


_NOTHING: Final = Issued(b"", b"", b"")


class Terms(NamedTuple):
    """For whom certificates are made, and how they follow each other."""

    names: tuple[str, ...]
    life: timedelta
    settle: timedelta
    """From the bundle in the configuration to the new certificate: API servers see a configuration within seconds."""


def step(kept: Kept, believed: bytes, terms: Terms, now: datetime) -> Kept:
    """What the Secret is to hold now; the same as it holds where nothing is to be done.

    Args:
        kept: what it holds.
        believed: the bundle that stands in the webhook's configuration.
        terms: for whom certificates are made.
        now: the time.
    """
    served = kept.served
    if served is None or now >= served.ends or not set(terms.names) <= names_of(served.certificate):
        # Nobody can be served by what there is, so nothing is lost by changing at once.
        made = issue(terms.names, terms.life, now)
        return Kept(made, None, _bundle([made.authority, *authorities_of(kept.bundle)], now), None)
    if kept.next is None:
        if not served.due(now):
            return kept._replace(bundle=_bundle([served.authority, *authorities_of(kept.bundle)], now))
        made = issue(terms.names, terms.life, now)
        bundle = _bundle([made.authority, served.authority, *authorities_of(kept.bundle)], now)
        return kept._replace(next=made, bundle=bundle, published=None)
    if kept.next.authority not in authorities_of(believed):
        return kept._replace(published=None)
    if kept.published is None:
        return kept._replace(published=now)
    if now < kept.published + terms.settle:
        return kept
    return Kept(kept.next, None, kept.bundle, None)


def _bundle(authorities: Iterable[bytes], now: datetime) -> bytes:
    return b"".join(one for one in dict.fromkeys(authorities) if not ended(one, now))


def _issued(data: dict[str, bytes], authority: str, certificate: str, key: str) -> Issued | None:
    found = Issued(data.get(authority, b""), data.get(certificate, b""), data.get(key, b""))
    try:
        names_of(found.authority)
        return found if found.key and found.ends.tzinfo is UTC else None
    except ValueError:
        return None
