"""What stands in place of a column's name where clusters are to be found in the items' texts."""

from __future__ import annotations

from typing import Final

#: The items that share a passage, a table or a template word for word are a cluster.
SHARED_CONTEXT: Final = "@context"
