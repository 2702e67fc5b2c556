"""One certificate of the webhook follows another, and at no moment is one served that is not believed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.gateway.admission.certificates.issuing import authorities_of, issue, names_of
from proctor.gateway.admission.certificates.rotation import Kept, Terms, step
from proctor.gateway.admission.certificates.source import Pair, present

_NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
_LIFE = timedelta(days=90)
_TERMS = Terms(("gateway.proctor.svc",), _LIFE, timedelta(minutes=2))


def test_a_certificate_is_for_its_names_and_signed_by_its_authority_alone() -> None:
    one, other = (issue(("a.b.svc", "10.0.0.1"), _LIFE, _NOW) for _ in range(2))
    assert names_of(one.certificate) == {"a.b.svc", "10.0.0.1"}
    certificate = x509.load_pem_x509_certificate(one.certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(one.authority))
    with pytest.raises(ValueError, match="issuer"):
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(other.authority))
    assert (one.begins, one.ends) == (_NOW, _NOW + _LIFE)


def test_a_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    one = issue(("a.b.svc",), _LIFE, _NOW)
    assert [one.due(_NOW + timedelta(days=days)) for days in (0, 59, 60, 89)] == [False, False, True, True]


def test_what_is_kept_survives_the_secret_and_what_is_damaged_is_as_if_it_were_not_there() -> None:
    kept = step(Kept(), b"", _TERMS, _NOW)
    later = step(kept, kept.bundle, _TERMS, _NOW + timedelta(days=61))
    assert later.next is not None
    assert Kept.of(later.data()) == later
    assert Kept.of({**later.data(), "tls.crt": b"nonsense"}).served is None
    assert Kept.of({"ca.crt": b"\xff", "published": b"never"}) == Kept()


def test_what_stands_is_left_as_it_is_until_it_is_due() -> None:
    kept = step(Kept(), b"", _TERMS, _NOW)
    assert step(kept, kept.bundle, _TERMS, _NOW + timedelta(days=59)) == kept


def test_another_name_is_served_at_once_and_the_old_authority_stays_believed() -> None:
    kept = step(Kept(), b"", _TERMS, _NOW)
    moved = step(kept, kept.bundle, _TERMS._replace(names=("other.svc",)), _NOW)
    assert moved.served is not None
    assert kept.served is not None
    assert names_of(moved.served.certificate) == {"other.svc"}
    assert authorities_of(moved.bundle) == [moved.served.authority, kept.served.authority]


@settings(max_examples=40, deadline=None)
@given(
    waits=st.lists(st.integers(min_value=1, max_value=72), min_size=30, max_size=60),
    forgets=st.sets(st.integers(min_value=0, max_value=59)),
)
def test_whenever_anybody_looks_what_is_served_was_believed_before(waits: list[int], forgets: set[int]) -> None:
    kept, believed, now = Kept(), b"", _NOW
    terms = _TERMS._replace(life=timedelta(days=9), settle=timedelta(hours=1))
    served = set[bytes]()
    for number, hours in enumerate(waits):
        before = kept
        kept = step(kept, believed, terms, now)
        assert kept.served is not None
        assert kept.served.ends > now
        if before.served is not None and kept.served != before.served and before.served.ends > now:
            assert kept.served.authority in authorities_of(believed)
            assert kept.served == before.next
        # A write of the configuration may fail: nothing goes on until it is there.
        believed = believed if number in forgets else kept.bundle
        assert kept.served.authority in authorities_of(kept.bundle)
        assert len(authorities_of(kept.bundle)) <= 3
        served.add(kept.served.certificate)
        now += timedelta(hours=hours)
    assert len(served) >= 1


def test_a_certificate_follows_another_in_three_looks_and_the_old_authority_leaves_when_it_has_ended() -> None:
    kept = step(Kept(), b"", _TERMS, _NOW)
    first, now = kept.served, _NOW + timedelta(days=60)
    for _ in range(3):
        assert kept.served == first
        kept = step(kept, kept.bundle, _TERMS, now)
        now += timedelta(minutes=2)
    assert first is not None
    assert kept.served != first
    assert len(authorities_of(kept.bundle)) == 2
    kept = step(kept, kept.bundle, _TERMS, _NOW + _LIFE)
    assert first.authority not in authorities_of(kept.bundle)


def test_a_pair_that_does_not_fit_leaves_the_one_that_is_served() -> None:
    from proctor.domain.errors import BadInputError

    one, other = (issue(("a.b.svc",), _LIFE, _NOW) for _ in range(2))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    present(context, Pair(one.certificate, one.key))
    with pytest.raises(BadInputError, match="cannot be served"):
        present(context, Pair(one.certificate, other.key))
