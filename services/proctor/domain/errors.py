"""Every error that Proctor raises on purpose, under one root.

A message says what was wrong (with the offending value), where, and what to do. The command line prints it
without a traceback and leaves with `exit_code`.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the `proctor` command."""

    APPROVED_OR_DONE = 0
    FAILURE = 1
    BAD_INPUT = 2
    REVIEW = 3
    BLOCKED = 4


class ProctorError(Exception):
    """Root of every deliberate error."""

    exit_code: ExitCode = ExitCode.FAILURE


class BadInputError(ProctorError):
    """A suite, data file or argument that a person has to mend."""

    exit_code = ExitCode.BAD_INPUT


class PluginError(BadInputError):
    """A part of a plug-in that is not installed here, or does not bring what it should."""

    def __init__(self, fault: str, mend: str) -> None:
        self.fault, self.mend = fault, mend
        super().__init__(f"{fault}; {mend}")


class CodeExecutionError(ProctorError):
    """Code that a model wrote cannot be run here, because it is switched off or there is no sandbox."""


class EndpointError(ProctorError):
    """A model endpoint that cannot be used: unreachable, refusing, or serving another model than the suite pins."""


class StackError(ProctorError):
    """A local service that did not start, or died."""


class StoreError(ProctorError):
    """An artifact, record or ledger entry that is missing or damaged."""


class StoreNotReadyError(StoreError):
    """A store that does not answer, or whose tables somebody else is still to migrate: it may be ready in a moment."""


class TooLargeError(ProctorError):
    """Something that would be stored and is larger than what can be read again. Trying again does not mend it."""


class EncoderError(ProctorError):
    """A sentence encoder that is missing, of another dimension, or not the file that was pinned."""


class RegistryError(ProctorError):
    """The model registry refused a write, or read back something else than was written."""


class NewerVersionError(ProctorError):
    """A message, a record or a document that only a newer Proctor reads. Whoever has one can go on with it."""
