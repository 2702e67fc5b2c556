"""Pictures of the dashboards, drawn from what a Prometheus answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import pytest

import draw_panels
from tests.support import REPOSITORY


@contextmanager
def prometheus(labels: list[dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """One that answers every query with these series; yields its address and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append(sent["query"][0])
            begin = float(sent["start"][0])
            values = [[begin, "0"], [begin + 60, "NaN"], [begin + 120, "0.25"]]
            result = [{"metric": one, "values": values} for one in labels]
            body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.timeout(180)
def test_every_dashboard_is_drawn_from_the_answers_to_each_of_its_queries(tmp_path: Path) -> None:
    labels = [{"model": f"m{number}", "suite": "s", "state": "queued"} for number in range(12)]
    with prometheus(labels) as (address, asked):
        assert draw_panels.main(["--prometheus", address, "--output", str(tmp_path)]) == 0
    pictures = sorted(path.name for path in tmp_path.iterdir())
    assert pictures == ["audits.png", "contamination.png", "serving.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())
    targets = [
        target
        for path in draw_panels.DASHBOARDS.glob("*.json")
        for panel in json.loads(path.read_text("utf-8"))["panels"]
        for target in panel.get("targets", ())
    ]
    assert len(asked) == len(targets)
    assert not [query for query in asked if "$" in query]


@pytest.mark.timeout(180)
def test_panels_without_data_are_listed_but_for_those_that_may_be_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with prometheus([]) as (address, _):
        arguments = ["--prometheus", address, "--output", str(tmp_path), "--may-be-empty", "GPU memory"]
        assert draw_panels.main(arguments) == 1
    said = capsys.readouterr().err
    assert "no data: serving: GPU utilisation" in said
    assert "GPU memory" not in said


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0714, "percentunit", "7.1%"), (0.0042, "s", "4.2 ms"), (90, "s", "90 s"), (600, "s", "10.0 min"),
        (9_000, "s", "2.5 h"), (12_345, "short", "12.3 k"), (3, "ops", "3/s"), (0, "s", "0 s"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_their_unit(value: float, unit: str, text: str) -> None:
    assert draw_panels.written(value, unit) == text


def test_the_page_shows_each_picture_and_lists_each_alert() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text("utf-8")
    pictures = {path.name for path in draw_panels.PICTURES.glob("*.png")}
    assert set(re.findall(r"\(monitoring/([\w.]+)\)", page)) == pictures
    assert pictures == {f"{path.stem}.png" for path in draw_panels.DASHBOARDS.glob("*.json")}
