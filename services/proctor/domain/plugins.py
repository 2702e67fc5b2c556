"""Plug-ins: parts that other distributions add to Proctor, found by name through entry points.

What users extend (strategies, backends, log formats, channels, stages, registries) has one `ExtensionPoint` each. Its
built-in parts are named by the same reference that an entry point holds, `module:attribute`, and are loaded in the same
way: when they are first asked for. So a part costs nothing where it is not used, and one that is broken breaks nobody
who does not use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, Final, Generic, NamedTuple, TypeVar

from proctor.domain.errors import PluginError

Part = TypeVar("Part")
#: Validation context of what somebody hands in: the plug-ins that it names must be here. What is on record is read
#: anywhere, also where a plug-in of it is not installed.
HANDED_IN: Final[Mapping[str, bool]] = {"plugins_must_be_here": True}


def handed_in(context: Any) -> bool:
    """Whether a validation context says that the plug-ins which are named must be here."""
    return context is not None and HANDED_IN.items() <= context.items()


class Origin(NamedTuple):
    """The distribution that a plug-in comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@lru_cache(maxsize=16)
def declared(group: str) -> Mapping[str, EntryPoint]:
    """Name → entry point of a group, of all distributions that are installed; nothing of them is imported.

    Where two distributions declare the same name, none of the two is taken by chance: `ExtensionPoint.get` refuses it.
    """
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, _origin(point))):
        # A distribution may be seen twice on the path, e.g. as it is installed and where it is worked on.
        if point.name in found and _origin(found[point.name]) != _origin(point):
            found[point.name] = EntryPoint(point.name, _AMBIGUOUS, group)
        else:
            found[point.name] = point
    return found


_AMBIGUOUS = "declared:twice"
#: The version of a distribution that has none.
_UNKNOWN = "?"


class ExtensionPoint(Generic[Part]):
    """One kind of thing that is found by its name: those that Proctor brings, and those of plug-ins."""

    def __init__(self, group: str, noun: str, kind: type[Part], built_in: Mapping[str, str]) -> None:
        """The extension point of an entry point group.

        Args:
            group: of the entry points, e.g. `proctor.channels`.
            noun: what one of them is, for messages, e.g. `channel`.
            kind: the class that every part is an instance of.
            built_in: name → `module:attribute` of the parts that Proctor brings. No plug-in takes the place of one.
        """
        self.group = group
        self._noun, self._kind = noun, kind
        self._built_in = {name: EntryPoint(name, reference, group) for name, reference in built_in.items()}
        self._loaded: dict[str, Part] = {}
        # A part's module may look up another of the same kind while it is imported.
        self._lock = RLock()

    def __contains__(self, name: str) -> bool:
        return name in self._built_in or name in declared(self.group)

    @property
    def built_in(self) -> tuple[str, ...]:
        """Names of the parts that Proctor brings, in their order."""
        return tuple(self._built_in)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name: of the built-in parts in their order, then of plug-ins by the alphabet."""
        return (*self._built_in, *(name for name in declared(self.group) if name not in self._built_in))

    def module_of(self, name: str) -> str:
        """The module that brings a built-in part; it is not imported."""
        return self._built_in[name].module

    def get(self, name: str) -> Part:
        """The part of a name.

        Raises:
            PluginError: when there is none, or the plug-in that declares it cannot be loaded.
        """
        # Loaded once, whoever of several threads asks first: a part may hold what it remembers.
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            return self._loaded[name]

    def origin(self, name: str) -> Origin | None:
        """Where a part comes from; None where Proctor brings it, or there is none of that name."""
        if name in self._built_in or (point := declared(self.group).get(name)) is None:
            return None
        return _origin(point)

    def _load(self, name: str) -> Part:
        part = self._built_in[name].load() if name in self._built_in else self._load_plugin(name)
        if not isinstance(part, self._kind):
            raise PluginError(
                f"the {self._noun} {name!r} of {self.origin(name)} is a {type(part).__name__}, and not a "
                f"{self._kind.__name__}",
                f"have its entry point in {self.group} name one",
            )
        return part

    def _load_plugin(self, name: str) -> object:
        point = declared(self.group).get(name)
        if point is None:
            raise PluginError(
                f"there is no {self._noun} {name!r}; there are: {', '.join(self.names)}",
                "if a plug-in brings it, install that here",
            )
        if point.value == _AMBIGUOUS:
            raise PluginError(
                f"two of the distributions that are installed declare a {self._noun} {name!r}", "remove one of them"
            )
        origin = _origin(point)
        if origin.version == _UNKNOWN:
            raise PluginError(
                f"the {self._noun} {name!r} is of {origin.distribution}, whose metadata hold no version, so that no "
                "card could name what gave a score",
                "install that distribution anew",
            )
        try:
            return point.load()
        except (Exception, SystemExit) as error:
            # Somebody else's module: whatever it raises is its fault, and has to be said with its name.
            raise PluginError(
                f"the {self._noun} {name!r} of {origin} cannot be loaded: {type(error).__name__}: {error}",
                "mend that distribution, or use a part of another name",
            ) from error


def _origin(point: EntryPoint) -> Origin:
    if point.dist is None:
        return Origin("an unknown distribution", _UNKNOWN)
    metadata = point.dist.metadata
    # Not by `version`, which is None, or raises, where there is none.
    name, version = (metadata[key] if key in metadata else "" for key in ("Name", "Version"))  # noqa: SIM401 - has no `get`
    return Origin(name or "an unknown distribution", version or _UNKNOWN)
