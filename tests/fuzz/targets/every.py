"""Every target there is."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets import admission, endpoints, files, messages, suites, texts

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (suites, files, texts, endpoints, messages, admission)
    for target in module.TARGETS
}
