"""The results_*.json of lm-evaluation-harness, which lies beside its samples and names the model that they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.domain.errors import BadInputError
from proctor.formats.logs.log_file import LogFile


def model_of_results(path: Path) -> str | None:
    """The model that a file of results names; None for a file that is none.

    Raises:
        BadInputError: when the file is missing, empty or too large, or names no model.
    """
    log = LogFile.of(path)
    # An archive is no text, and a log of samples is no document past its first line.
    if not log.data.lstrip().startswith(b"{") or b'"lm_eval_version"' not in log.data:
        return None
    try:
        document = log.document
    except BadInputError:
        # Whoever reads it as a log says best what is the matter.
        return None
    if "lm_eval_version" not in document or not isinstance(document.get("results"), dict):
        return None
    named = _named(document.get("config")) or document.get("model_name")
    if not isinstance(named, str) or not named:
        raise BadInputError(f"{path} has results of lm-evaluation-harness that name no model; leave the file out")
    return named


def _named(config: Any) -> str | None:
    """The model among the arguments of the harness' client, which are an object or `name=value,…`."""
    given = config.get("model_args") if isinstance(config, dict) else None
    if isinstance(given, str):
        given = dict(part.partition("=")[::2] for part in given.split(","))
    found = given.get("model", given.get("pretrained")) if isinstance(given, dict) else None
    return found if isinstance(found, str) else None
