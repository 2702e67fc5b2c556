"""Answer extractors and graders, each with its name. Pure."""

from proctor.grading.extractors import EXTRACTORS, Extractor, resolve_extractor
from proctor.grading.graders import grade, read_answer

__all__ = ["EXTRACTORS", "Extractor", "grade", "read_answer", "resolve_extractor"]
