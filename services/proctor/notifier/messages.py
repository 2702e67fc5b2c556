"""Words for people, sent by apprise.

apprise says whether a message was taken, and not what became of it otherwise. But it logs a failure inside of the
`except` that caught it, so whoever listens to its log sees the exception itself; and where a server refused, the line
has the status (`error=404`). What can be told from neither may have been sent.

apprise's log goes nowhere else: on its lower levels it holds addresses and keys.
"""

from __future__ import annotations

import logging
import re
import smtplib
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from proctor.domain.errors import BadInputError
from proctor.domain.notify.notice import Notice
from proctor.domain.notify.settings import EventSink, NotifySettings, is_mail_address
from proctor.notifier.delivery import SENT, Delivery, Fate, of_status

#: A service that takes longer is given up, and may have taken the message.
TIMEOUT_S: Final = 45
_STATUS: Final = re.compile(r"\berror=(\d{3})\b")
#: How deep an exception may lie in others: requests wraps urllib3's, which wraps the system's.
_MAX_DEPTH: Final = 10
_INSTALL: Final = "pip install 'proctor[notify]'"

# Paths of chats' webhooks are keys, and urllib3 logs paths; a retry, which it would log as a warning, is not asked for.
logging.getLogger("urllib3").setLevel(logging.ERROR)


def url_of(settings: NotifySettings, name: str) -> str | None:
    """apprise's URL of a target or a mail address; None where the operator has no such target, or no mail.

    It is a secret.
    """
    target = settings.targets.get(name)
    if isinstance(target, str):
        return target
    if isinstance(target, EventSink) or settings.mail is None or not is_mail_address(name):
        return None
    server = settings.mail.server
    # As text, because nothing in it is markup, and a reader of mail as text is spared the other part.
    return f"{server}{'&' if '?' in server else '?'}to={quote(name, safe='')}&format=text"


def check_target(name: str, url: str) -> None:
    """See whether apprise can make something of a target's URL.

    Raises:
        BadInputError: when it cannot, or is not installed.
    """
    with _listening():
        if _service(url) is None:
            raise BadInputError(
                f"PROCTOR_NOTIFY: the URL of {name!r} is none that apprise knows how to send to; "
                "https://appriseit.com lists them"
            )


def send_message(url: str, notice: Notice, *, timeout_s: float = TIMEOUT_S) -> Delivery:
    """Send a message once.

    Args:
        url: apprise's, of one recipient.
        notice: the words.
        timeout_s: after which it is given up.

    Raises:
        BadInputError: when apprise is not installed.
    """
    with _listening() as heard:
        service = _service(url)
        if service is None:
            return Delivery(Fate.REFUSED, "apprise knows no such service")
        kind = "failure" if notice.failure else "info"
        result = service.notify(
            title=notice.title, body=notice.body, notify_type=kind, body_format="text", timeout=timeout_s
        )
    if result:
        return SENT
    if heard.status is not None:
        return of_status(heard.status)
    if heard.error is not None:
        return of_error(heard.error)
    return Delivery(Fate.UNKNOWN, f"no answer came within {timeout_s:g} s, or none that says what became of it")


def of_error(error: BaseException) -> Delivery:
    """What an exception that ended a sending says of the message."""
    for one in _chain(error):
        if isinstance(one, smtplib.SMTPRecipientsRefused):
            codes = [code for code, _ in one.recipients.values()]
            return _of_reply(min(codes, default=500))
        if isinstance(one, smtplib.SMTPResponseException):
            return _of_reply(one.smtp_code)
        if isinstance(one, smtplib.SMTPNotSupportedError):
            return Delivery(Fate.REFUSED, "the mail server cannot do what its URL asks for")
        if isinstance(one, ssl.SSLCertVerificationError):
            return Delivery(Fate.LATER, "its certificate was not accepted")
        if isinstance(one, ConnectionRefusedError | socket.gaierror) or type(one).__name__ in _NEVER_CONNECTED:
            return Delivery(Fate.LATER, "it could not be reached")
    return Delivery(Fate.UNKNOWN, "the connection broke, or was silent, before it said what became of the message")


#: urllib3's, by their names: it is apprise's dependency and not ours.
_NEVER_CONNECTED: Final = frozenset({"NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ProxyError"})


def _of_reply(code: int) -> Delivery:
    fate = Fate.LATER if 400 <= code < 500 else Fate.REFUSED
    return Delivery(fate, f"the mail server refused it with {code}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MAX_DEPTH:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        within = [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
        waiting += [inner for inner in within if isinstance(inner, BaseException)]


class _Listener(logging.Handler):
    """Hears why apprise could not send, and keeps nothing else of its log."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.status: int | None = None
        self.error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Look at the exception that is being handled where the line is written."""
        self.error = self.error or sys.exc_info()[1]
        said = _STATUS.search(record.getMessage())
        if said is not None and record.levelno >= logging.WARNING:
            self.status = int(said[1])


@contextmanager
def _listening() -> Iterator[_Listener]:
    heard = _Listener()
    log = logging.getLogger("apprise")
    propagate, level, log.propagate = log.propagate, log.level, False
    # Of mail it says no more than that it was not sent, above its lowest level.
    log.setLevel(logging.DEBUG)
    log.addHandler(heard)
    try:
        yield heard
    finally:
        log.removeHandler(heard)
        log.propagate = propagate
        log.setLevel(level)


def _service(url: str) -> Any:
    try:
        import apprise
    except ModuleNotFoundError:
        raise BadInputError(f"messages are sent by apprise, which is not installed: {_INSTALL}") from None
    # One attempt, in this order and at once: what is tried again, and when, is the outbox's to say.
    asset = apprise.AppriseAsset(
        app_id="Proctor",
        app_desc="Proctor",
        app_url="",
        async_mode=False,
        interpret_escapes=False,
        interpret_emojis=False,
        pgp_autogen=False,
        default_service_retry=0,
    )
    service = apprise.Apprise(asset=asset)
    return service if service.add(url) else None
