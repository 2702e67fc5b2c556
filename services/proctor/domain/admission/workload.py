"""Which model versions a workload names: a Pod, or what makes Pods by a template. Pure, over hostile objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from proctor.domain.admission.reference import ANNOTATION, ModelReference, references_of

#: Where a kind has the template of its Pods.
_TEMPLATES: Final = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))


class Named(NamedTuple):
    """The annotations of a workload; empty where there is none."""

    own: str
    """The object's own."""
    template: str
    """Of the template that its Pods are made by."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Those that name something."""
        return tuple(text for text in (self.own, self.template) if text)

    @property
    def only_own(self) -> bool:
        """Whether the Pods that are made of it will name nothing."""
        return bool(self.own) and not self.template


def named_by(workload: Any) -> Named:
    """The annotations of a workload, of whatever kind; nothing where it is no object at all."""
    templates = [_annotation(_at(workload, path)) for path in _TEMPLATES]
    return Named(_annotation(workload), next(filter(None, templates), ""))


def has_template(workload: Any) -> bool:
    """Whether Pods are made of it."""
    return any(_at(workload, path) is not None for path in _TEMPLATES)


def versions_named(named: Named) -> tuple[ModelReference, ...]:
    """The versions, each once.

    Raises:
        NoReferenceError: an annotation names none, or too many, or something that is none.
    """
    return tuple(dict.fromkeys(one for text in named.texts for one in references_of(text)))


def _annotation(thing: Any) -> str:
    metadata = thing.get("metadata") if isinstance(thing, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    found = annotations.get(ANNOTATION) if isinstance(annotations, Mapping) else None
    return found if isinstance(found, str) else ""


def _at(thing: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        thing = thing.get(name) if isinstance(thing, Mapping) else None
    return thing
