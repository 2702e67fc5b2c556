"""What an audit cannot say, as a report lists it."""

from __future__ import annotations

from proctor.domain.base import Frozen


class Limitation(Frozen):
    """One thing that an audit cannot say: a code for machines, a sentence for people."""

    code: str
    text: str
