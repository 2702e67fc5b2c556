"""A command that reads logs of other tools: its help says which formats it knows here."""

from __future__ import annotations

import click


class LogCommand(click.Command):
    """Lists at the end of its help the log formats that are installed, and whose each of a plug-in is."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list. Nothing of a plug-in is loaded for it."""
        from proctor.formats.logs.reading import LOG_FORMATS

        origins = {name: LOG_FORMATS.origin(name) for name in LOG_FORMATS.names}
        names = [name if origin is None else f"{name} (of {origin})" for name, origin in origins.items()]
        with formatter.section("Log formats"):
            formatter.write_text(f"{', '.join(names)}; plug-ins add more (entry points {LOG_FORMATS.group})")
