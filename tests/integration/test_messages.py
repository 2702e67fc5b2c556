"""Messages to real servers: what arrives, and what is said of each way in which one may not."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import BadInputError
from proctor.domain.notify.notice import Notice, notice_of, notice_of_a_test
from proctor.domain.notify.settings import NotifySettings, Occasion
from proctor.notifier.delivery import SENT, Delivery, Fate
from proctor.notifier.messages import check_target, send_message, url_of
from tests.mail_and_chat import SECRET, Chat, Mailbox, chat_server, mail_server
from tests.record_samples import an_event
from tests.support import free_port

NOTICE = notice_of_a_test("chat")
#: What begins markup, a mention, a link or a command in HTML, Markdown or a chat.
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> [click](https://evil.example) ![i](http://evil.example/i) "
    "<https://evil.example|here> <!channel> @everyone @here `code` **b** ~~s~~ :skull: javascript://evil # h"
    "\r\nBcc: a@b\x1b[2J\u202egnp.exe"
)


@pytest.fixture
def chat() -> Iterator[Chat]:
    with chat_server() as server:
        yield server


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as server:
        yield server


def mail_to(mailbox: Mailbox, address: str = "a@example.org") -> str:
    settings = NotifySettings.model_validate({"mail": {"server": mailbox.url}})
    url = url_of(settings, address)
    assert url is not None
    return url


def hostile_notice() -> Notice:
    reasons = [{"code": HOSTILE, "text": HOSTILE}]
    said = an_event("a-1", modelId=HOSTILE, auditSuiteId=HOSTILE, outcome="block", reasons=reasons)
    event = DecisionEvent.model_validate(said)
    return notice_of(event, Occasion.BLOCK, report="https://proctor.example.org/audits/a-1/report")


def test_a_mail_arrives_as_plain_text_to_one_recipient(mailbox: Mailbox) -> None:
    event = DecisionEvent.model_validate(an_event("a-1", outcome="review", modelId="org/m"))
    notice = notice_of(event, Occasion.REVIEW, report="https://proctor.example.org/audits/a-1/report")
    assert send_message(mail_to(mailbox, "obrien+ml@example.org"), notice) == SENT
    (mail,) = mailbox.mails
    assert mailbox.recipients == ["obrien+ml@example.org"]
    assert mail["Subject"] == "Proctor: org/m is waiting for review (suite)"
    assert mail.get_content_type() == "text/plain"
    text = mail.get_content()
    assert "Decision: review" in text
    assert "Reason: Both upper bounds are within the limits." in text
    assert "Report: https://proctor.example.org/audits/a-1/report" in text


def test_hostile_names_are_inert_in_a_mail_and_in_a_chat(mailbox: Mailbox, chat: Chat) -> None:
    notice = hostile_notice()
    assert send_message(mail_to(mailbox), notice) == SENT
    assert send_message(chat.url, notice) == SENT
    (mail,) = mailbox.mails
    assert set(mail.keys()) & {"Bcc", "bcc"} == set()
    assert mailbox.recipients == ["a@example.org"]
    (message,) = chat.messages
    for text in (str(mail["Subject"]), mail.get_content(), message["text"]):
        own = text.replace("https://proctor.example.org/audits/a-1/report", "")
        assert not set(own) & set("<>@`*~[]|#\x1b\u202e")
        assert "://" not in own
        assert ":skull:" not in own


def test_html_mail_is_escaped_once_more(mailbox: Mailbox) -> None:
    url = mailbox.url + "&to=a@example.org&format=html"
    assert send_message(url, Notice("t", "<b>", failure=False)) == SENT
    (mail,) = mailbox.mails
    html = mail.get_body(("html",))
    assert html is not None
    assert "&lt;b&gt;" in html.get_content()


@pytest.mark.parametrize(
    ("answer", "fate", "why"),
    [
        (500, Fate.LATER, "HTTP 500"),
        (503, Fate.LATER, "HTTP 503"),
        (429, Fate.LATER, "HTTP 429"),
        (404, Fate.REFUSED, "HTTP 404"),
        (502, Fate.UNKNOWN, "HTTP 502"),
        (504, Fate.UNKNOWN, "HTTP 504"),
        ("drop", Fate.UNKNOWN, "the connection broke"),
        ("hold", Fate.UNKNOWN, "was silent"),
    ],
)
def test_what_is_known_of_a_message_that_a_chat_did_not_take(
    chat: Chat, answer: int | str, fate: Fate, why: str
) -> None:
    chat.answers = [answer]
    delivery = send_message(f"{chat.url}?rto=0.3", NOTICE)
    assert delivery.fate is fate
    assert why in delivery.why


def test_a_chat_that_takes_too_long_is_given_up(chat: Chat) -> None:
    chat.answers = ["hold"]
    delivery = send_message(f"{chat.url}?rto=20", NOTICE, timeout_s=0.3)
    assert delivery.fate is Fate.UNKNOWN
    chat.release()


def test_nobody_there_is_not_sent() -> None:
    port = free_port()
    for url in (f"mmost://127.0.0.1:{port}/{SECRET}", f"mailto://127.0.0.1:{port}/?from=a@b.org&to=a@b.org"):
        assert send_message(url, NOTICE) == Delivery(Fate.LATER, "it could not be reached")
    away = send_message(f"mmost://name-that-nobody-has.invalid/{SECRET}", NOTICE)
    assert away.fate is Fate.LATER


@pytest.mark.parametrize(
    ("answer", "fate"), [("451 later", Fate.LATER), ("554 no", Fate.REFUSED), ("552 too much", Fate.REFUSED)]
)
def test_a_mail_server_s_refusal_says_whether_it_is_for_good(mailbox: Mailbox, answer: str, fate: Fate) -> None:
    mailbox.answer = answer
    delivery = send_message(mail_to(mailbox), NOTICE)
    assert delivery.fate is fate
    assert answer[:3] in delivery.why


def test_no_log_line_and_no_reason_holds_the_key(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    chat.answers = [404, "drop", 500]
    with caplog.at_level(logging.DEBUG):
        why = [send_message(chat.url, NOTICE).why for _ in range(4)]
    assert len(chat.messages) == 2
    assert SECRET not in caplog.text
    assert SECRET not in "".join(why)


def test_a_url_that_apprise_does_not_know_is_refused_without_being_repeated() -> None:
    with pytest.raises(BadInputError, match="the URL of 'ops' is none that apprise knows") as refused:
        check_target("ops", f"nosuch://host/{SECRET}")
    assert SECRET not in str(refused.value)
