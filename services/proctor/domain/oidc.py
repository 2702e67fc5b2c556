"""What the operator says of an OpenID Connect issuer: whose tokens are good here, and who may do what by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.host import is_loopback
from proctor.domain.operator_json import operator_object
from proctor.domain.problems import quoted
from proctor.domain.submitter import ForbiddenError, Role, Submitter
from proctor.domain.url import UrlFault, parts_of

#: Asymmetric alone: what verifies must not be able to sign, and an issuer's public key is no secret.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Of a claim that becomes a name, which stands with audits and in columns of 64.
MAX_NAME_CHARACTERS: Final = 59
#: Of a token's list of groups.
MAX_GROUPS: Final = 1_000
#: So that no name of an issuer's is one of a token's: `anna` of a list and `oidc:anna` are two.
PREFIX: Final = "oidc:"
#: The entry of `roles` that holds for every token of the issuer.
EVERYONE: Final = "*"
_EXAMPLE: Final = (
    '{"issuer": "https://login.example", "audience": "proctor", "roles_claim": "groups", '
    '"roles": {"ml-governance": {"role": "reviewer", "sees_all": true}, "ml": "operator", "*": "viewer"}}'
)
_KEYS: Final = frozenset(
    {"issuer", "audience", "roles", "roles_claim", "name_claim", "algorithms", "authorized_parties", "leeway_s"}
)
_ROLES: Final = {role.value: role for role in Role}
_MAX_LEEWAY_S: Final = 300


class Grant(NamedTuple):
    """What a group's members may do."""

    role: Role
    sees_all: bool = False


class OidcSettings(NamedTuple):
    """One issuer."""

    issuer: str
    audience: tuple[str, ...]
    roles: Mapping[str, Grant]
    roles_claim: str = "groups"
    name_claim: str = "sub"
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    authorized_parties: tuple[str, ...] = ()
    """Clients that a token may have been given to, where it says so (`azp`)."""
    leeway_s: float = 60.0

    def caller(self, claims: Mapping[str, Any]) -> Submitter:
        """Whose a verified token is, and what they may do.

        Raises:
            ForbiddenError: when none of its groups has a role here, or it has no name that can be shown.
        """
        name = claims.get(self.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS or not _is_plain(name):
            raise ForbiddenError(
                f"the token's claim {self.name_claim!r} is no name: 1 to {MAX_NAME_CHARACTERS} printable characters"
            )
        grants = [self.roles[group] for group in (*_groups(claims, self.roles_claim), EVERYONE) if group in self.roles]
        if not grants:
            raise ForbiddenError(
                f"'{PREFIX}{name}' has no role here: none of the groups in the claim {self.roles_claim!r} has one"
            )
        best = max((grant.role for grant in grants), key=list(Role).index)
        sees_all = any(grant.sees_all for grant in grants)
        return Submitter(f"{PREFIX}{name}", sees_all, best, f"{PREFIX}{self.issuer}")


def oidc_settings(text: str, *, source: str) -> OidcSettings | None:
    """What the operator wrote; None for nothing.

    Args:
        text: JSON.
        source: the variable or file that it comes from, for messages.

    Raises:
        BadInputError: when it cannot be used, with what to write.
    """
    said = operator_object(text, source=source, example=_EXAMPLE)
    if not said:
        return None
    if unknown := sorted(set(said) - _KEYS):
        raise BadInputError(f"{source}: {quoted(unknown[0])} is an unknown key; there are {', '.join(sorted(_KEYS))}")
    issuer, audience = said.get("issuer"), _words(said, "audience", (), source)
    if not isinstance(issuer, str) or not is_safe_url(issuer) or "?" in issuer:
        raise BadInputError(
            f"{source}: issuer is {quoted(issuer)}; write the issuer's https URL (http for this machine alone), as its "
            "tokens have it in iss"
        )
    if not audience:
        raise BadInputError(f"{source}: audience is missing; write what tokens for this gateway have in aud")
    algorithms = _words(said, "algorithms", ("RS256", "ES256"), source)
    if not algorithms or not set(algorithms) <= set(ALGORITHMS):
        raise BadInputError(
            f"{source}: algorithms has others than {', '.join(ALGORITHMS)}: use those that the issuer has"
        )
    leeway_s = said.get("leeway_s", 60)
    if isinstance(leeway_s, bool) or not isinstance(leeway_s, int | float) or not 0 <= leeway_s <= _MAX_LEEWAY_S:
        raise BadInputError(f"{source}: leeway_s is {quoted(leeway_s)}; use 0 to {_MAX_LEEWAY_S} seconds")
    return OidcSettings(
        issuer=issuer,
        audience=audience,
        roles=_roles(said.get("roles"), source),
        roles_claim=_word(said, "roles_claim", "groups", source),
        name_claim=_word(said, "name_claim", "sub", source),
        algorithms=algorithms,
        authorized_parties=_words(said, "authorized_parties", audience, source),
        leeway_s=float(leeway_s),
    )


def is_safe_url(text: str) -> bool:
    """Whether keys may be fetched from a URL: over TLS, or from this machine."""
    try:
        parts = parts_of(text)
        host = parts.place().host
        parts.plain_path()
    except UrlFault:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text
    here = parts.scheme == "http" and is_loopback(host)
    return plain and (parts.scheme == "https" or here) and parts.user is None and "#" not in parts.rest


def _roles(said: Any, source: str) -> dict[str, Grant]:
    if not isinstance(said, dict) or not said:
        raise BadInputError(f"{source}: roles is missing; write who may do what, as in {_EXAMPLE}")
    return {group: _grant(group, one, source) for group, one in said.items()}


def _grant(group: str, said: Any, source: str) -> Grant:
    role, sees_all = said, False
    if isinstance(said, dict) and set(said) <= {"role", "sees_all"}:
        role, sees_all = said.get("role"), said.get("sees_all", False)
    if not isinstance(role, str) or role not in _ROLES or not isinstance(sees_all, bool):
        raise BadInputError(
            f"{source}: roles: {quoted(group)} is {quoted(said)}; use one of {', '.join(_ROLES)}, or an object with "
            "role and sees_all"
        )
    return Grant(_ROLES[role], sees_all)


def _word(said: Mapping[str, Any], key: str, default: str, source: str) -> str:
    word = said.get(key, default)
    if not isinstance(word, str) or not word:
        raise BadInputError(f"{source}: {key} is {quoted(word)}; write the name of a claim")
    return word


def _words(said: Mapping[str, Any], key: str, default: tuple[str, ...], source: str) -> tuple[str, ...]:
    found = said.get(key, default)
    words = (found,) if isinstance(found, str) else tuple(found) if isinstance(found, list | tuple) else (None,)
    if not all(isinstance(word, str) and word for word in words):
        raise BadInputError(f"{source}: {key} is {quoted(found)}; write a text, or a list of texts")
    return tuple(str(word) for word in words)


def _groups(claims: Mapping[str, Any], claim: str) -> list[str]:
    """The groups in a claim, which may be a path of members: a name with dots in it comes before a path."""
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    # `*` is the operator's word and none of the issuer's.
    return [group for group in listed[:MAX_GROUPS] if isinstance(group, str) and group != EVERYONE]


def _is_plain(name: str) -> bool:
    return name.isprintable() and name == name.strip()
