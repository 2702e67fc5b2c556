"""A log record as one line of JSON.

The line is ASCII: newlines, control characters, bidirectional overrides and lone surrogates of a hostile text are
escapes in it, so that no text can end a line or pass for another one.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from proctor import __version__
from proctor.runtime.logs.context import FIELDS, pod_name, said_of_now
from proctor.runtime.traces.tracing import current_ids

#: Container runtimes cut a line after 16 KiB, and half a line is no JSON. Of these bytes, escapes among them:
MAX_MESSAGE_BYTES: Final = 6_000
MAX_STACK_BYTES: Final = 6_000
MAX_FIELD_BYTES: Final = 256
#: What stands in the place of what was left out.
_CUT: Final = "[...]"


class JsonLines(logging.Formatter):
    """One JSON object a record, in one line.

    Args:
        service: which of Proctor's services this process is.
    """

    def __init__(self, service: str) -> None:
        super().__init__()
        self._process = {
            "service": service,
            "version": __version__,
            "pod": pod_name(),
        }

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shortened(_message(record), MAX_MESSAGE_BYTES),
            **self._process,
            "pid": record.process,
        }
        said = said_of_now()
        line.update({name: shortened(said[name], MAX_FIELD_BYTES) for name in FIELDS if name in said})
        ids = current_ids()
        if ids is not None:
            line["trace_id"], line["span_id"] = ids
        if record.exc_info and record.exc_info[0] is not None:
            kind, error, _ = record.exc_info
            line["exception"] = {
                "type": kind.__name__,
                "message": shortened(_text(error), MAX_FIELD_BYTES * 4),
                # Its end says where it happened.
                "stack": shortened(self.formatException(record.exc_info), MAX_STACK_BYTES, keep_end=True),
            }
        return json.dumps(line, ensure_ascii=True)


def shortened(text: str, most_bytes: int, *, keep_end: bool = False) -> str:
    """Text of which no more than so many bytes stand in the line; what is left out is marked."""
    # Half of a character is six bytes.
    if len(text) * 12 <= most_bytes or len(json.dumps(text)) <= most_bytes:
        return text
    # Each character is a byte at least.
    text = text[-most_bytes:] if keep_end else text[:most_bytes]
    while len(json.dumps(text)) > most_bytes - len(_CUT):
        less = len(text) * 7 // 8
        text = text[-less:] if keep_end else text[:less]
    return f"{_CUT}{text}" if keep_end else f"{text}{_CUT}"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:
        # A line whose arguments do not fit it is said all the same: in text, logging prints a traceback instead.
        return f"{record.msg!r} with {len(record.args or ())} arguments that do not fit it: {type(error).__name__}"


def _text(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"its words cannot be had: {type(failure).__name__}"
