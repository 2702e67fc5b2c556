"""The next version of Proctor, as far as it matters who reads what: this program with additions of every kind.

A copy of the package with a few lines laid into it. Its messages have a field that this version does not know, as have
the inputs of an audit; it has a message that this version has no task for, and a column in the table of audits with
the migration that adds it. Workers of both run side by side in a `MixedCluster`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proctor.runtime.records.schema import SCHEMA_VERSION
from tests.chaos.cluster import Cluster, Role
from tests.support import REPOSITORY

#: Copies of a role from this number on are of the next version.
NEXT = 10
#: Which messages of the next version carry what this one does not know: every "second" one, or "all".
MOODY = "PROCTOR_TEST_MOODY"
#: What the next version's routers note of a message that this version has no task for.
GREETED = "greeted"

_FIELD = '    mood: str = added("", since=3)\n'
_THIS, _FOLLOWING = f"{SCHEMA_VERSION:04d}", f"{SCHEMA_VERSION + 1:04d}"
_MIGRATION = '''"""A column of the next version."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "NEXT", "THIS"


def upgrade() -> None:
    op.add_column("audits", sa.Column("mood", sa.Text, nullable=True))
'''
_GREETING = """

class Greeting(Message):
    task: ClassVar[str] = "router.greeting"
    audit_id: str
"""
_GREET = """

from proctor.domain.messages import Greeting


@handles(Greeting)
def greeting(message: Greeting) -> None:
    with open(os.environ["CHAOS_CONTROL"] + "/greeted", "a") as greeted:
        print(message.audit_id, file=greeted)


def _greet(audit_id: str) -> None:
    logger.warning("greets %s", audit_id)
    send(Greeting(audit_id=audit_id))


"""
#: By module: what is looked for, and what stands there in the next version.
_CHANGES: dict[str, tuple[tuple[str, str], ...]] = {
    "domain/messages.py": (
        ("    task: ClassVar[str]\n\n    @classmethod\n", f"    task: ClassVar[str]\n{_FIELD}\n    @classmethod\n"),
        ("\n\nclass StartAudit(", f"{_GREETING}\n\nclass StartAudit("),
    ),
    "router/inputs.py": (
        (
            "from proctor.router.terms import Role, Terms\n",
            "from proctor.domain.versions import added\nfrom proctor.router.terms import Role, Terms\n",
        ),
        ("    items: str\n    ", f"    items: str\n{_FIELD}    "),
    ),
    "router/tasks.py": (
        (
            '    changes: dict[str, Any] = {} if audit.inputs.planned_stage is None else {"planned_stage": None}\n',
            '    changes: dict[str, Any] = {} if audit.inputs.planned_stage is None else {"planned_stage": None}\n'
            '    changes |= {"mood": "next"} if message.audit_id[0] < "8" else {}\n',
        ),
        ('    """Begin an audit, or go on', "    _greet(message.audit_id)\n" '    """Begin an audit, or go on'),
        ("\nlogger = ", f"import os\n{_GREET}\nlogger = "),
    ),
    "runtime/messaging/tasks.py": (
        ("    retrying(_CLOSED_WAITS_S, ",
         f"    if os.environ['{MOODY}'] == 'all' or next(_sent) % 2:\n"
         "        message = message.model_copy(update={'mood': 'next'})\n"
         "    retrying(_CLOSED_WAITS_S, "),
        ("\nlogger = ", "import itertools, os\n_sent = itertools.count()\nlogger = "),
    ),
    "runtime/records/tables.py": (
        ('    sa.UniqueConstraint("subject", "ordinal"),', '    sa.Column("mood", sa.Text),\n'
         '    sa.UniqueConstraint("subject", "ordinal"),'),
    ),
    "runtime/records/schema.py": (
        (f"SCHEMA_VERSION: Final = {SCHEMA_VERSION}", f"SCHEMA_VERSION: Final = {SCHEMA_VERSION + 1}"),
    ),
    "runtime/records/store.py": (('{"state": state, "detail"', '{"mood": "next", "state": state, "detail"'),),
}  # fmt: skip


def next_version(folder: Path) -> Path:
    """Lay the next version down in a folder; returns what is to stand in the path of Python for it."""
    shutil.copytree(
        REPOSITORY / "services" / "proctor", folder / "proctor", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "triton").symlink_to(REPOSITORY / "services" / "triton")
    for name, changes in _CHANGES.items():
        module = folder / "proctor" / name
        text = module.read_text("utf-8")
        for before, after in changes:
            assert text.count(before) == 1, f"{name} does not have this once any more: {before!r}"
            text = text.replace(before, after)
        module.write_text(text, "utf-8")
    migrations = folder / "proctor" / "runtime" / "records" / "migrations" / "versions"
    migration = _MIGRATION.replace("NEXT", _FOLLOWING).replace("THIS", _THIS)
    (migrations / f"v{_FOLLOWING}_mood.py").write_text(migration)
    return folder


class MixedCluster(Cluster):
    """A deployment in the middle of an upgrade: roles from the copy NEXT on are of the next version."""

    def __init__(self, home: Path, roles: Sequence[Role], *, moody: str = "second", **options: Any) -> None:
        super().__init__(home, roles, **options)
        self._next = next_version(home / "next")
        self._moody = moody
        self._others: subprocess.Popen[str] | None = None

    def __enter__(self) -> MixedCluster:
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._others is not None:
            with self._of_the_next_version():
                nursery = self._nursery
                assert nursery is not None
                assert nursery.stdin is not None
                assert nursery.stdout is not None
                nursery.stdin.close()
                nursery.wait(timeout=30)
                nursery.stdout.close()
        super().__exit__(*raised)

    def add(self, *roles: Role) -> None:
        """Let more workers join."""
        for role in roles:
            self._start(role)
        self.roles += roles

    def remove(self, *roles: Role) -> None:
        """Kill workers for good. What they had in hand another gets."""
        self.roles = tuple(role for role in self.roles if role not in roles)
        for role in roles:
            self.kill(role)

    def _start(self, role: Role) -> None:
        if role.copy < NEXT:
            super()._start(role)
            return
        with self._of_the_next_version():
            super()._start(role)

    @contextmanager
    def _of_the_next_version(self) -> Iterator[None]:
        mine, self._nursery = self._nursery, self._others
        try:
            if self._nursery is None:
                path = os.pathsep.join((str(self._next), str(REPOSITORY)))
                self._nursery = self._others = subprocess.Popen(
                    [sys.executable, "-m", "tests.chaos.nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True, cwd=self.home,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, MOODY: self._moody},
                )  # fmt: skip
                self._read()
            yield
        finally:
            self._nursery = mine
