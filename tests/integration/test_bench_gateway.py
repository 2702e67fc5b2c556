"""The speed benchmark of webhooks accounts for every delivery: none lost, none audited twice, forged ones refused."""

from __future__ import annotations

import json

import pytest

import bench_gateway


def test_every_delivery_is_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    bench_gateway.main(["--deliveries", "60", "--per-second", "60", "--only", "webhooks", "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    claims = {claim["name"]: claim["value"] for claim in said["claims"]}
    assert [name for name, value in claims.items() if value and "within" not in name] == []
    (audits,) = [one["note"] for one in said["figures"] if one["name"].startswith("until every audit")]
    assert int(audits.split()[0]) > 10


def test_every_page_is_timed_over_a_filled_store(capsys: pytest.CaptureFixture[str]) -> None:
    bench_gateway.main(["--only", "pages", "--audits", "300", "--items", "600", "--rounds", "1", "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    assert [claim["name"] for claim in said["claims"]] == ["every page over SQLite, 95 of 100 within, ms"]
    timed = [one["name"] for one in said["figures"] if one["unit"] == "ms"]
    assert {"SQLite: list of audits", "SQLite: review queue", "SQLite: costs"} <= set(timed)


def test_sizes_that_measure_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_gateway.main(["--deliveries", "1"])
    assert "20 or more" in capsys.readouterr().err
