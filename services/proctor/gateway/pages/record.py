"""`/record`: where the decision log ends, whether it is whole, and what an auditor takes along."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import IO, Final, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from proctor.domain.errors import ProctorError
from proctor.domain.record.entry import Signer
from proctor.domain.submitter import ForbiddenError, Role, Submitter
from proctor.gateway.audits import LocalDesk
from proctor.gateway.http.sessions import CSRF_FIELD, check_csrf, form_of
from proctor.gateway.pages.entries import ShownEntry, shown_entry
from proctor.gateway.pages.shell import Shell
from proctor.gateway.pages.verifying import Verifying
from proctor.runtime.records.decision_log import Head, NoKey, SigningKey
from proctor.runtime.signing import known_keys, open_signing_key, public_pem
from proctor.studies.record.checks import Checked, check_store, trust_in
from proctor.studies.record.exporting import checkpoint_line, export_lines

#: Entries on the page.
_ENTRIES: Final = 25
_PIECE_BYTES: Final = 1 << 18


class _Looked(NamedTuple):
    head: Head | None
    entries: tuple[ShownEntry, ...]
    keys: tuple[Signer, ...]


def record_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes, verifying, exporting = shell.routes(), Verifying(), asyncio.Lock()

    @routes.get("/record")
    async def record(request: Request, caller: Submitter = shell.caller) -> Response:
        looked = await shell.run(_looked, shell.desk(caller))
        return shell.page(
            request,
            caller,
            "record.html.jinja",
            title="Record",
            **looked._asdict(),
            verifying=verifying,
            may_verify=caller.may(Role.OPERATOR),
            sees_all=caller.sees_all,
        )

    @routes.post("/record/verify")
    async def verify(request: Request, caller: Submitter = shell.caller) -> Response:
        check_csrf(request, (await form_of(request)).get(CSRF_FIELD, ""))
        shell.front.hold_to(caller, Role.OPERATOR)
        desk = shell.desk(caller)
        verifying.begin(lambda told: _checked(desk, told), caller.name)
        return RedirectResponse("/record", HTTPStatus.SEE_OTHER)

    @routes.get("/record/export")
    async def export(caller: Submitter = shell.caller) -> Response:
        desk = _of_all(shell, caller)
        # To a file first: whoever takes it slowly holds up no store. One at a time, so that they fill no disk.
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115, closed by who sends it
        try:
            async with exporting:
                await asyncio.to_thread(_export, desk, file)
        except BaseException:
            file.close()
            raise
        return _download(_pieces(file), "record.jsonl")

    @routes.get("/record/checkpoint")
    async def checkpoint(caller: Submitter = shell.caller) -> Response:
        desk = _of_all(shell, caller)
        line = await shell.run(lambda: checkpoint_line(desk.records, _key(desk), _keys(desk)))
        return _download(_once(line), "record.checkpoint")

    @routes.get("/record/keys.pem")
    async def keys(caller: Submitter = shell.caller) -> Response:
        found = await shell.run(_keys, shell.desk(caller))
        return _download(_once(b"".join(public_pem(one.public_key) for one in found)), "proctor-public.pem")

    return routes


def _of_all(shell: Shell, caller: Submitter) -> LocalDesk:
    if not caller.sees_all:
        raise ForbiddenError(f"the record has everybody's audits in it, and '{caller.name}' sees its own")
    return shell.desk(caller)


def _looked(desk: LocalDesk) -> _Looked:
    with desk.records.log_view() as view:
        entries = view.newest(_ENTRIES) if desk.caller.sees_all else []
        return _Looked(view.head(), tuple(shown_entry(one) for one in entries), tuple(_keys(desk)))


def _checked(desk: LocalDesk, told: Callable[[int], None]) -> Checked:
    # Without the reports, of which there may be gigabytes.
    return check_store(desk.records, None, desk.settings.home, trust_in(_keys(desk)), told=told)


def _export(desk: LocalDesk, file: IO[bytes]) -> None:
    for line in export_lines(desk.records, None, _key(desk), _keys(desk)):
        file.write(line)
    file.seek(0)


def _keys(desk: LocalDesk) -> list[Signer]:
    return known_keys(desk.settings.home, desk.settings.signing_key)


def _key(desk: LocalDesk) -> SigningKey | NoKey:
    try:
        return open_signing_key(desk.settings.home, desk.settings.signing_key)
    except (ProctorError, OSError) as error:
        return NoKey(f"no key could be used: {error}"[:300])


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _download(content: AsyncIterator[bytes], name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return StreamingResponse(content, headers=headers, media_type="application/octet-stream")
