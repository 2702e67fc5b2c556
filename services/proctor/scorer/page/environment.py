"""How templates are read, of reports and of the dashboard: every expression goes through `visible` and is then escaped,
by the environment and not by the template's author.
"""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from proctor.scorer.page import phrases
from proctor.scorer.page.visible import visible


def report_templates() -> PackageLoader:
    """The report's own, with the icons and marks that pages share."""
    return PackageLoader("proctor.scorer.page", "templates")


def page_environment(loader: BaseLoader) -> Environment:
    """An environment with the filters for numbers and sentences; whoever makes it adds those of its own."""
    environment = Environment(
        loader=loader,
        autoescape=True,
        finalize=_spelled_out,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=phrases.count,
        counted=phrases.counted,
        percent=phrases.percent,
        points=phrases.points,
        rounded=phrases.rounded,
        p_value=phrases.p_value,
        sentence=phrases.sentence,
    )
    return environment


def _spelled_out(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value
