"""Answer extractors and graders, each with its name. Pure."""

from proctor.grading.extractors import EXTRACTORS, Extractor, resolve_extractor
from proctor.grading.graders import grade

__all__ = ["EXTRACTORS", "Extractor", "grade", "resolve_extractor"]
