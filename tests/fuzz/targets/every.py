"""Every target there is."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets import admission, corpora, endpoints, files, messages, suites, texts

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (suites, files, texts, corpora, endpoints, messages, admission)
    for target in module.TARGETS
}
