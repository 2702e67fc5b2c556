"""Exports of variants written, and taken in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.cli.variants.building import counted, ranked
from proctor.cli.variants.opening import check_any, open_suite, read_export, records_of
from proctor.domain.canonical import DIGEST_OR_PREFIX, bytes_digest, digest_matches
from proctor.domain.errors import BadInputError
from proctor.formats.variants_file import write_variants
from proctor.perturbation.encoder import resolve_encoder
from proctor.perturbation.library.exchange import admit_file
from proctor.perturbation.library.store import VariantLibrary
from proctor.runtime.files import write_atomic
from proctor.runtime.settings import Settings


def export_suite(
    suite_file: Path, file: Path, settings: Settings, *, with_rejections: bool, overwrite: bool
) -> dict[str, Any]:
    """Write what the library has of a suite; the result as plain data.

    Raises:
        BadInputError: where the library has nothing of it, or the file cannot be written.
    """
    if file.exists() and not overwrite:
        raise BadInputError(f"{file} exists already; give another name, or --force to overwrite it")
    opened = open_suite(suite_file, settings)
    with records_of(settings) as records:
        entries = opened.entries(VariantLibrary(records))
    check_any(entries, suite_file, settings)
    data = write_variants(opened.header(), entries, with_rejections=with_rejections)
    try:
        write_atomic(file, data, private=False)
    except OSError as error:
        raise BadInputError(f"{file} cannot be written: {error.strerror}; give another path") from None
    variants = sum(len(entry.variants) for entry in entries)
    served = sum(bool(entry.variants) for entry in entries)
    missing = len(opened.items) - len(entries)
    never = f" {missing:,} items were never built, and are not in it." if missing else ""
    return {
        "file": str(file),
        "digest": bytes_digest(data),
        "items": served,
        "variants": variants,
        "rejections": sum(len(entry.rejections) for entry in entries) if with_rejections else None,
        "items_missing": missing,
        "conclusion": f"Wrote {variants:,} variants of {served:,} items to {file}.{never}",
    }


def import_variants(file: Path, settings: Settings, *, pin: str | None, remeasure: bool) -> dict[str, Any]:
    """Take a file's variants into the library; the result as plain data.

    Raises:
        BadInputError: for a file that is not the pinned one, is damaged, or holds what this library cannot take.
        EncoderError: when there is no encoder here, or it fails.
    """
    if pin is not None and not DIGEST_OR_PREFIX.fullmatch(pin):
        raise BadInputError(f"--pin {pin[:80]!r} is no digest: give 'sha256:' and 12 to 64 lower-case hex digits")
    read = read_export(file)
    if pin is not None and not digest_matches(pin, read.digest):
        raise BadInputError(f"{file} has the digest {read.digest}, not {pin}: it is not the file that was pinned")
    encoder = resolve_encoder(settings.encoder, settings.encoder_precision)
    with records_of(settings) as records:
        done = admit_file(read, encoder=encoder, library=VariantLibrary(records), remeasure=remeasure)
    turned_away = f"; {counted(done.rejected)}" if done.rejected else ""
    return {
        "file": str(file),
        "digest": read.digest,
        **done._asdict(),
        "rejected": ranked(done.rejected),
        "conclusion": f"{done.variants:,} variants of {done.items:,} items are in the library, {done.new:,} items of "
        f"them new{turned_away}.",
    }
