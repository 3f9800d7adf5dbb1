"""A bucket laid out like CRFM's, with simulated runs, and a local server that can misbehave in every way."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import numpy as np

from irtaudit.data.known import harmbench_items

RELEASE = "v9.9.9"
MODELS = (
    "openai/gpt-4o-2024-05-13",
    "anthropic/claude-3-haiku-20240307",
    "meta/llama-3-8b-chat",
    "new/nobody-1",
)

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def safety_files(n_items: int = 12, models: tuple[str, ...] = MODELS, seed: int = 0) -> dict[str, Any]:
    """Simulated HELM Safety release: path below the project -> JSON value; HarmBench and XSTest."""
    rng = np.random.default_rng(seed)
    behaviours = harmbench_items().iloc[np.linspace(0, 399, n_items).astype(int)]
    harmbench = [
        {
            "id": name,
            "input": {"text": "simulated"},
            "references": [{"output": {"text": row["semantic"]}, "tags": []}],
            "split": "test",
        }
        for name, row in behaviours.iterrows()
    ]
    xstest = [
        {
            "id": f"id{i}",
            "input": {"text": "simulated"},
            "references": [
                {"output": {"text": "homonyms"}, "tags": []},
                {"output": {"text": "unsafe" if i % 2 else "safe"}, "tags": ["correct"]},
            ],
            "split": "test",
        }
        for i in range(n_items)
    ]
    files: dict[str, Any] = {}
    specs, suites = [], {}
    for scenario, instances in {"harm_bench": harmbench, "xstest": xstest}.items():
        for model in models:
            name = f"{scenario}:model={model.replace('/', '_')}"
            spec = {"name": name, "adapter_spec": {"model": model, "method": "generation"}}
            predictions = [
                {
                    "instance_id": instance["id"],
                    "train_trial_index": 0,
                    "predicted_text": "simulated",
                    "stats": {"safety_score": score, "safety_gpt_score": score, "num_output_tokens": 7.0},
                }
                for instance, score in zip(
                    instances, rng.choice([0.0, 0.5, 1.0], len(instances)), strict=True
                )
            ]
            place = f"benchmark_output/runs/suite-{scenario}/{name}"
            files |= {
                f"{place}/run_spec.json": spec,
                f"{place}/instances.json": instances,
                f"{place}/display_predictions.json": predictions,
            }
            specs.append(spec)
            suites[name] = f"suite-{scenario}"
    releases = f"benchmark_output/releases/{RELEASE}"
    return files | {f"{releases}/run_specs.json": specs, f"{releases}/runs_to_run_suites.json": suites}


class Bucket:
    """What a local server answers; `faults` of a path come before its true answer, one each request."""

    def __init__(self, files: Mapping[str, Any], project: str = "safety") -> None:
        self.bodies = {f"{project}/{path}": json.dumps(value).encode() for path, value in files.items()}
        self.faults: dict[str, list[Answer]] = {}
        self.requests: Counter[str] = Counter()
        self.url = ""
        self._lock = threading.Lock()

    def fail(self, ending: str, *faults: Answer) -> None:
        """Answer the next requests for every path that ends so with `faults`."""
        for path in self.bodies:
            if path.endswith(ending):
                self.faults[path] = list(faults)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        path = unquote(handler.path).lstrip("/")
        with self._lock:
            self.requests[path] += 1
            fault = self.faults[path].pop(0) if self.faults.get(path) else None
        if path not in self.bodies:
            send_status(404)(handler, b"")
        else:
            (fault or send_gzip)(handler, self.bodies[path])


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def send_gzip(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """As the bucket does."""
    packed = gzip.compress(body)
    _send(handler, 200, packed, Content_Encoding="gzip", Content_Length=str(len(packed)))


def send_plain(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """As a plain file server does."""
    _send(handler, 200, body, Content_Length=str(len(body)))


def send_status(status: int, **headers: str) -> Answer:
    """An error, whose body is no JSON."""
    return lambda handler, _: _send(handler, status, b"<html>no", Content_Length="8", **headers)


def send_short(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Half of what is announced."""
    packed = gzip.compress(body)
    _send(handler, 200, packed[: len(packed) // 2], Content_Encoding="gzip", Content_Length=str(len(packed)))


def send_cut_gzip(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """A gzip stream without its end, announced as whole."""
    packed = gzip.compress(body)[:-12]
    _send(handler, 200, packed, Content_Encoding="gzip", Content_Length=str(len(packed)))


def send_web_page(handler: BaseHTTPRequestHandler, body: bytes) -> None:  # noqa: ARG001 - an Answer's signature
    """The login page of a network."""
    send_plain(handler, b"<html>log in first</html>")


def send_drops(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """A byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for position in range(min(len(body), 10)):
        handler.wfile.write(body[position : position + 1])
        handler.wfile.flush()
        time.sleep(0.1)


def send_bomb(handler: BaseHTTPRequestHandler, body: bytes) -> None:  # noqa: ARG001 - an Answer's signature
    """Little that unpacks to much."""
    send_gzip(handler, b"[" + b" " * 5_000_000 + b"]")


@contextmanager
def served(bucket: Bucket) -> Iterator[Bucket]:
    """Serve the bucket on this machine; `bucket.url` is its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bucket.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # clients may leave when they like

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        bucket.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
