"""An audit as test results in JUnit's XML, which every system of continuous integration reads: a test case a rule."""

from __future__ import annotations

from collections import Counter
from typing import Final
from xml.etree import ElementTree

from proctor.cli.audits.ci.outcome import Check, Outcome, Result
from proctor.domain.problems import visible

#: Of one text; a report has it whole.
MAX_CHARACTERS: Final = 4_000
_ELEMENTS: Final = {Result.FAILED: "failure", Result.ERROR: "error", Result.SKIPPED: "skipped"}


def junit_xml(outcome: Outcome) -> bytes:
    """The document. Characters that XML cannot hold, and those that do not show, are written as escapes."""
    tallies = Counter(check.result for check in outcome.checks)
    counts = {
        "tests": str(len(outcome.checks)),
        "failures": str(tallies[Result.FAILED]),
        "errors": str(tallies[Result.ERROR]),
        "skipped": str(tallies[Result.SKIPPED]),
    }
    root = ElementTree.Element("testsuites", {"name": "proctor", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"proctor {_line(outcome.suite)}", **counts})
    facts = {"model": outcome.model_id, "audit": outcome.audit_id, "decision": outcome.decision, **outcome.facts}
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _line(value)})
    for check in outcome.checks:
        _add_case(suite, check, outcome)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: ElementTree.Element, check: Check, outcome: Outcome) -> None:
    classname = f"proctor.{_line(outcome.suite)}.{_line(outcome.model_id)}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": classname, "name": _line(check.name)})
    if check.result in _ELEMENTS:
        first = _line(check.text.partition("\n")[0])
        kind = _line(check.kind)
        said = {"message": f"{kind}: {first}"}
        if check.result is not Result.SKIPPED:
            said["type"] = kind
        element = ElementTree.SubElement(case, _ELEMENTS[check.result], said)
        element.text = "\n".join(_line(line) for line in check.text.splitlines())
    elif check.text:
        ElementTree.SubElement(case, "system-out").text = "\n".join(_line(line) for line in check.text.splitlines())


def _line(text: str) -> str:
    return visible(" ".join(text[:MAX_CHARACTERS].split()))
