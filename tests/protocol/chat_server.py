"""An OpenAI-compatible server on this machine, whose behaviour a test scripts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """What to send: status, headers, body, and whether to drip or to hold it back."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0.0
    hold: threading.Event | None = None


@dataclass
class Server:
    """Address, and every request as it came in."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def message(content: str | None = None, calls: list[tuple[str, Any]] | None = None) -> dict[str, Any]:
    """The body of a completion."""
    told: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        told["tool_calls"] = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": name, "arguments": text if isinstance(text, str) else json.dumps(text)},
            }
            for n, (name, text) in enumerate(calls)
        ]
    return {"choices": [{"message": told}], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}


@contextmanager
def serving(answer: Callable[[dict[str, Any], int], Served]) -> Iterator[Server]:
    """Serve `answer(request, number)` until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                server.requests.append(request)
                server.keys.append(self.headers.get("authorization"))
                number = len(server.requests)
            with suppress(BrokenPipeError, ConnectionResetError):  # clients give up, as some tests want
                self._send(answer(request, number))

        def _send(self, served: Served) -> None:
            if served.hold is not None:
                served.hold.wait(30)
            body = served.body if isinstance(served.body, bytes) else json.dumps(served.body).encode()
            self.send_response(served.status)
            for name, value in {"content-length": str(len(body)), **served.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if not served.drip:
                self.wfile.write(body)
            for n in range(len(body) if served.drip else 0):
                self.wfile.write(body[n : n + 1])
                self.wfile.flush()
                if stopped.wait(served.drip):
                    return

        def log_message(self, *_: Any) -> None:
            pass

    lock, stopped = threading.Lock(), threading.Event()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server = Server(f"http://127.0.0.1:{httpd.server_address[1]}/v1")
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        stopped.set()
        httpd.shutdown()
        httpd.server_close()
