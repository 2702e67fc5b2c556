"""What is said of versions that somebody wants to deploy: the record, held to the keys that this installation believes.

Nothing of the record is kept between two questions.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Final

from proctor.domain.admission.reference import ModelReference
from proctor.domain.admission.verdict import Verdict, verdict_of
from proctor.domain.decision import DecisionEvent
from proctor.domain.record.chain import Trust
from proctor.runtime.public_address import report_address
from proctor.runtime.records.deployable import DeployableVersions
from proctor.runtime.settings import Settings
from proctor.runtime.signing import key_id, known_keys, verifies

#: Keys come and go with files, which are few: an answer takes milliseconds, and reading them as long.
_KEYS_FOR_S: Final = 10.0


class Verdicts:
    """Who is asked about versions.

    Args:
        settings: whose keys are believed, and where reports are read.
        versions: what is on record of them.
    """

    def __init__(self, settings: Settings, versions: DeployableVersions) -> None:
        self._settings = settings
        self._versions = versions
        self._lock = Lock()
        self._trust: tuple[float, Trust] | None = None

    def on(self, reference: ModelReference) -> Verdict:
        """What is to be said of a version now.

        Raises:
            NewerVersionError: a decision needs a newer Proctor.
            StoreError: the record store does not answer, or a standing cannot be read.
            BadInputError: a file that should hold a key does not.
        """
        return verdict_of(reference, self._versions.facts(reference, self.trust()), self._address)

    def trust(self) -> Trust:
        """Whose signatures count: those of the home's keys, and of PROCTOR_TRUSTED_KEYS.

        Raises:
            BadInputError: as `on`.
        """
        now_s = time.monotonic()
        with self._lock:
            if self._trust is None or now_s - self._trust[0] > _KEYS_FOR_S:
                settings = self._settings
                keys = known_keys(settings.home, settings.signing_key, settings.trusted_keys)
                self._trust = now_s, Trust({key.key_id: key.public_key for key in keys}, verifies, key_id)
            return self._trust[1]

    def _address(self, event: DecisionEvent) -> str:
        url = self._settings.dashboard_url
        return event.report_path if url is None else report_address(url, event.audit_id)
