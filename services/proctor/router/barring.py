"""The operator's word on an audit that is under way: whether its items may go where it has them sent.

It was asked when the audit was submitted, by whoever took it on. It is asked again before prompts are handed out, with
the settings of the router: a benchmark may have been marked since, and a submission may have come past a gateway that
knew less.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from proctor.domain.url import shown
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs
from proctor.router.submit.allowed import approved
from proctor.router.submit.privacy import marked_by_name, private_by_content
from proctor.runtime.artifacts.chunks import each_item
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.settings import Settings

#: Audits whose benchmark was looked into, which means to read all of its items.
_KEPT: Final = 1_024


class Barrier:
    """The marks of a router's settings, held against audits."""

    def __init__(self, settings: Settings, artifacts: ArtifactStore) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._marked_content = lru_cache(maxsize=_KEPT)(self._content)

    def cause(self, audit: AuditView) -> str | None:
        """Why nothing of an audit may be asked; None where it may. Costs nothing where nothing is marked.

        The suite's own word on it was held against the endpoints where it was submitted, and cannot change.
        """
        if not self._settings.private_benchmarks:
            return None
        inputs = audit.inputs
        contents, marked = inputs.contents, self._marked_content
        why = marked_by_name(audit.suite, self._settings) or marked(contents.dataset, inputs.items)
        if why is None and inputs.fresh is not None:
            why = marked(contents.fresh, inputs.fresh)
        if why is None and inputs.control is not None:
            why = marked(contents.control, inputs.control)
        return None if why is None else self._not_approved(inputs, why)

    def _content(self, dataset: str | None, items: str) -> str | None:
        return private_by_content(dataset, each_item(self._artifacts, items), self._settings)

    def _not_approved(self, inputs: AuditInputs, why: str) -> str | None:
        for spec in (inputs.endpoint, inputs.paraphraser, inputs.router, *inputs.solvers):
            if spec is not None and not approved(spec, self._settings):
                return (
                    f"{why}, and {shown(spec.url)} is not approved for private datasets; have the operator approve it "
                    'with "private": true in PROCTOR_ENDPOINTS, which the router has to be told too, and start the '
                    "audit again: it goes on where it stopped"
                )
        return None
