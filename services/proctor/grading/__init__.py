"""Answer extractors and graders, each with its name. Pure."""

from proctor.grading.extractors import EXECUTION, EXTRACTORS, Extractor, executing, resolve_extractor
from proctor.grading.graders import grade, read_answer

__all__ = ["EXECUTION", "EXTRACTORS", "Extractor", "executing", "grade", "read_answer", "resolve_extractor"]
