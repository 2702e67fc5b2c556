"""How much of the error an audit may spend by each share of its items: the functions of Lan and DeMets.

Lan and DeMets (1983), "Discrete sequential boundaries for clinical trials", Biometrika 70, 659–663. What a look may
spend depends on the share of the items that it has, and on no look after it, so that looks may fall anywhere.
"""

from __future__ import annotations

import math
from enum import StrEnum

from scipy import special


class Spending(StrEnum):
    """A spending function by its name."""

    OBRIEN_FLEMING = "obrien_fleming"
    """2 − 2Φ(z_{1−α/2} / √t), on each side: next to nothing early, so that the last look is nearly that of an audit
    without looks."""
    POCOCK = "pocock"
    """α · ln(1 + (e − 1)t): about as much at every look, so that what is plain ends early."""

    def spent(self, information: float, alpha: float) -> float:
        """The error spent by a share of the items, of `alpha` in all.

        Args:
            information: share of the items, 0 to 1.
            alpha: error of one side in the whole audit, above 0 and below 1; spent whole at 1.
        """
        if information <= 0.0:
            return 0.0
        if information >= 1.0:
            return alpha
        if self is Spending.POCOCK:
            return alpha * math.log1p((math.e - 1) * information)
        quantile = -special.ndtri(alpha / 2)
        return float(2 * special.ndtr(-quantile / math.sqrt(information)))
