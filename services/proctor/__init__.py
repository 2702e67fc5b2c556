"""Proctor audits an LLM's benchmark scores for contamination and gates the promotion of models on the evidence."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: Public names and the modules that hold them, loaded when first asked for: `import proctor` stays quick.
_LAZY: dict[str, str] = {
    "LocalStack": "proctor.localstack.stack",
    "LoggedAnswer": "proctor.domain.run_log",
    "ProtocolsDifferError": "proctor.evidence.paired.results",
    "RunLog": "proctor.domain.run_log",
    "Settings": "proctor.runtime.settings",
    "Suite": "proctor.domain.suite",
    "audit_truncation": "proctor.studies.truncation",
    "compare_logs": "proctor.studies.comparison",
    "load_suite": "proctor.formats.suites",
    "noise_summary": "proctor.evidence.noise.summary",
    "parse_suite": "proctor.domain.suite_problems",
    "plan_comparison": "proctor.evidence.paired.power",
    "read_log": "proctor.formats.logs.reading",
    "read_router_table": "proctor.formats.router_table",
    "regrade": "proctor.grading.regrading",
    "triage": "proctor.grading.triage",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'proctor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
