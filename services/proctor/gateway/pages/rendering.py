"""Pages from templates, and the headers that they are sent with.

As in the report, every expression of a template goes through `visible` and is then escaped: what a model, a suite or a
person wrote neither runs nor reorders a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.responses import HTMLResponse

from proctor.domain.canonical import bytes_digest
from proctor.scorer.page.environment import page_environment, report_templates

#: What a page may load: the gateway's own style sheet and script, and nothing written into the page itself.
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    # Not `no-referrer`, under which a browser says of its own forms that they come from nowhere.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
#: Of a word in the middle of a line.
_CUT: Final = 200


def page(template: str, context: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    """A page of a template, as it is sent."""
    return HTMLResponse(_environment().get_template(template).render(context), status, _HEADERS)


@cache
def stylesheet() -> bytes:
    """The one style sheet: what pages share with reports, and what is their own."""
    shared = files("proctor.scorer.page").joinpath("templates/shared.css").read_bytes()
    return shared + files("proctor.gateway.pages").joinpath("templates/pages.css").read_bytes()


@cache
def script() -> bytes:
    """The one script, without which every page works, too."""
    return files("proctor.gateway.pages").joinpath("templates/pages.js").read_bytes()


@cache
def _environment() -> Environment:
    # The report's icons are the pages', too.
    own = PackageLoader("proctor.gateway.pages", "templates")
    environment = page_environment(ChoiceLoader([own, report_templates()]))
    environment.filters.update(
        moment=moment,
        duration=duration,
        cut=cut,
        segment=lambda text: quote(text, safe=""),
        query=lambda values: urlencode({name: value for name, value in values.items() if value}),
    )
    environment.globals["style"] = f"/assets/pages.css?{bytes_digest(stylesheet())[7:19]}"
    environment.globals["script"] = f"/assets/pages.js?{bytes_digest(script())[7:19]}"
    return environment


def moment(text: str) -> str:
    """A time of ISO 8601 as a person reads it, in UTC; what is none, as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    if when.tzinfo is not None:
        when = when.astimezone(UTC)
    return f"{when:%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """So many seconds as a person says it, from a second to days."""
    whole = max(0, round(seconds))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}s"
    return f"{whole} second{'' if whole == 1 else 's'}"


def cut(text: str, most: int = _CUT) -> str:
    """The beginning of a text, where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"
