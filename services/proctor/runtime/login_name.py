"""The person at this machine's terminal, by the name of their login."""

from __future__ import annotations

import os
import pwd


def login_name() -> str:
    """The name of the account that this process runs under, or its number where it has no name.

    Not what USER or LOGNAME say, which anybody sets to anything.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
