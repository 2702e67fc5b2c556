"""A model version as a workload names it: `NAME@VERSION`, in an annotation that anybody may write."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible

#: On Pods and on the pod templates of what makes them; several versions are separated by commas.
ANNOTATION: Final = "proctor.dev/model"
#: Of a version with the digest of its weights in place of the registry's word for it.
DIGEST: Final = "sha256:"
#: As many characters as a key of a ConfigMap has.
MAX_REFERENCE_CHARACTERS: Final = 253
#: Of a workload that serves more models than these, nobody could read the refusal.
MAX_REFERENCES: Final = 16
MAX_ANNOTATION_CHARACTERS: Final = MAX_REFERENCES * (MAX_REFERENCE_CHARACTERS + 2)
_SHOWN_CHARACTERS: Final = 80
_PLAIN: Final = re.compile(r"[A-Za-z0-9.-]", re.ASCII)


class NoReferenceError(BadInputError):
    """An annotation that names no model versions."""


class ModelReference(NamedTuple):
    """A version of a model."""

    name: str
    """The registered model's name, or the model id."""
    version: str
    """As the registry has it, or the digest of the weights."""

    @property
    def text(self) -> str:
        """As it stands in an annotation."""
        return f"{self.name}@{self.version}"

    @property
    def is_digest(self) -> bool:
        """Whether the weights are named themselves."""
        return self.version.startswith(DIGEST)


def references_of(annotation: str) -> tuple[ModelReference, ...]:
    """The versions that an annotation names, each once, in their order.

    Raises:
        NoReferenceError: it names none, or too many, or something that is none. What is said of it is bounded,
            printable and on one line.
    """
    if len(annotation) > MAX_ANNOTATION_CHARACTERS:
        raise NoReferenceError(
            f"{ANNOTATION} has {len(annotation):,} characters; name {MAX_REFERENCES} versions at most, in "
            f"{MAX_REFERENCE_CHARACTERS} characters each"
        )
    pieces = [piece.strip(" \t") for piece in annotation.split(",")]
    found = dict.fromkeys(_reference(piece) for piece in pieces if piece)
    if not found:
        raise NoReferenceError(f"{ANNOTATION} names no model; write NAME@VERSION, or take it away")
    if len(found) > MAX_REFERENCES:
        raise NoReferenceError(f"{ANNOTATION} names {len(found)} versions; {MAX_REFERENCES} at most are looked up")
    return tuple(found)


def _reference(text: str) -> ModelReference:
    name, at, version = text.rpartition("@")
    if not (name and at and version):
        raise NoReferenceError(f"{ANNOTATION} names {shown(text)}, which is no version; write NAME@VERSION")
    if len(text) > MAX_REFERENCE_CHARACTERS:
        raise NoReferenceError(
            f"{ANNOTATION} names {shown(text)}, in {len(text):,} characters; a version has "
            f"{MAX_REFERENCE_CHARACTERS} at most"
        )
    if visible(text) != text or name != name.strip() or version != version.strip():
        raise NoReferenceError(f"{ANNOTATION} names {shown(text)}, which has characters that no version has")
    return ModelReference(name, version)


def shown(text: str) -> str:
    """A name from outside as a message may repeat it: bounded, printable, in quotation marks."""
    cut = text[:_SHOWN_CHARACTERS]
    marks = "…" if len(text) > len(cut) else ""
    return f"'{visible(cut)}{marks}'"


def approval_key(reference: ModelReference) -> str | None:
    """Under which a ConfigMap holds what is said of a version; None where no key can.

    A key has letters, digits, '-', '_' and '.', and a ValidatingAdmissionPolicy has to come to the same one: what is
    neither letter, digit, '-' nor '.' is '_' and its bytes in UTF-8 as hexadecimal digits. UTF-8 says by its first
    byte how many follow, so two names never have one key.
    """
    key = "".join(
        sign if _PLAIN.fullmatch(sign) else "_" + sign.encode("utf-8", "surrogatepass").hex() for sign in reference.text
    )
    # Kubernetes refuses the dots, which could be a folder's.
    return None if len(key) > MAX_REFERENCE_CHARACTERS or key.startswith("..") else key
