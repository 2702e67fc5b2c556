"""Where a service's log goes, and in which form: the one place that says so."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, NamedTuple

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogFormat(StrEnum):
    """The form of a line."""

    TEXT = "text"
    """For people at a terminal."""
    JSON = "json"
    """One JSON object a line, for what collects logs."""


class Log(NamedTuple):
    """The log of this process."""

    format: LogFormat
    level: str

    @property
    def is_json(self) -> bool:
        """Whether everything that is printed has to be a line of JSON."""
        return self.format is LogFormat.JSON


def configure_logging(service: str, level: str, form: LogFormat) -> Log:
    """Have this process log to standard error; what is configured already stays.

    In JSON everything is: what is printed on either stream, warnings, and errors that nobody caught. What libraries in
    C write by themselves (gRPC's core, the interpreter as it crashes) passes by Python, and stays as it is.

    Args:
        service: what the lines say that this process is.
        level: Python's name of the least level that is logged.
        form: the form of a line.
    """
    if form is LogFormat.TEXT:
        logging.basicConfig(level=level, format=TEXT_FORMAT)
        return Log(form, level)
    from proctor.runtime.logs.json_lines import JsonLines

    handler = logging.StreamHandler(sys.__stderr__)
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(level=level, handlers=[handler])
    logging.captureWarnings(True)
    sys.stdout, sys.stderr = Printed("stdout", logging.INFO), Printed("stderr", logging.WARNING)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    return Log(form, level)


def adopt_celery(log: Log) -> None:
    """Have Celery log as this process does.

    In text it does by itself, because the root logger has a handler. In JSON it must neither give loggers of its own
    handlers that write text, nor print its banner and its farewells past everything.
    """
    if not log.is_json:
        return
    import celery.apps.worker
    from celery.signals import setup_logging

    def configured(loglevel: int, **_: Any) -> None:
        logging.getLogger().setLevel(loglevel)

    setup_logging.connect(configured, weak=False)
    celery.apps.worker.safe_say = _say_safely


def _say_safely(message: object, stream: object = None) -> None:
    """What Celery says in the handler of a signal, where a stream or a lock may be in use: written in one call."""
    del stream
    root = logging.getLogger()
    record = root.makeRecord("celery.apps.worker", logging.INFO, "", 0, str(message), (), None)
    for handler in root.handlers:
        if isinstance(handler, logging.StreamHandler) and handler.formatter is not None:
            os.write(2, f"{handler.format(record)}\n".encode())


class Printed(io.TextIOBase):
    """A stream whose lines are logged: what a library prints is no line of JSON.

    Args:
        name: of the logger.
        level: of the lines.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, name: str, level: int) -> None:
        super().__init__()
        self._logger = logging.getLogger(name)
        self._level = level
        self._begun = threading.local()

    def fileno(self) -> int:
        """What lies behind it, for those that write there by themselves."""
        return 2

    def write(self, text: str) -> int:
        """Log the lines that are whole by now."""
        # A TypeError of bytes, by which click knows a stream of text.
        *lines, begun = (getattr(self._begun, "text", "") + text).split("\n")
        self._begun.text = begun
        for line in filter(str.strip, lines):
            # Where logging itself fails it prints why, which would come back here for ever.
            if not getattr(self._begun, "logs", False):
                self._begun.logs = True
                try:
                    self._logger.log(self._level, "%s", line)
                finally:
                    self._begun.logs = False
        return len(text)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("proctor").critical("an error that nobody caught", exc_info=(kind, error, trace))


def _uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is None or isinstance(found.exc_value, SystemExit):
        return
    logging.getLogger("proctor").critical(
        "an error that nobody caught in thread %s",
        None if found.thread is None else found.thread.name,
        exc_info=(found.exc_type, found.exc_value, found.exc_traceback),
    )
