"""JSON over a network that may fail: retried, limited in size and time, whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from irtaudit._version import __version__
from irtaudit.errors import StorageError

NOT_THERE = frozenset({403, 404, 410})
"""A public bucket answers 403 for what it does not have, if it does not let strangers list it."""

_PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
_SETTINGS = (*_PROXIES, *map(str.lower, _PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What httpx takes from the environment."""

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Patience:
    """How hard a download tries.

    Attributes
    ----------
    tries : int
        Requests per file.
    pause : float
        Seconds before the second try; doubled before each further one, up to `longest_pause`, and at least
        what the server asks for (Retry-After).
    longest_pause : float
        Seconds.
    timeout : float
        Seconds that one try may take.
    max_bytes : int
        Most bytes of a file, as sent and unpacked.
    """

    tries: int = 6
    pause: float = 0.5
    longest_pause: float = 30.0
    timeout: float = 300.0
    max_bytes: int = 2**28


class _TryAgainError(Exception):
    """One try failed in a way that another may not."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


@contextmanager
def downloads(patience: Patience, connections: int) -> Iterator[httpx.Client]:
    """A client for `download`, to be shared by threads.

    Raises
    ------
    StorageError
        If the proxy or the certificates that this machine's settings name cannot be used.
    """
    timeout = httpx.Timeout(min(30.0, patience.timeout))
    headers = {"User-Agent": f"irtaudit/{__version__}", "Accept-Encoding": "gzip"}
    limits = httpx.Limits(max_connections=connections)
    try:
        client = httpx.Client(timeout=timeout, headers=headers, limits=limits, follow_redirects=True)
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
        named = [name for name in _SETTINGS if name in os.environ]  # a proxy's value may hold a password
        raise StorageError(
            f"this machine's network settings cannot be used ({error}); look at {', '.join(named) or 'them'}"
        ) from None
    with client:
        yield client


def is_address(text: str) -> bool:
    """Is this the address of something on the web?"""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host)


def download(client: httpx.Client, url: str, patience: Patience, stop: threading.Event) -> bytes | None:
    """The JSON text at an address, unpacked; None where the server has nothing there.

    Parameters
    ----------
    client : httpx.Client
        From `downloads`.
    url : str
    patience : Patience
    stop : threading.Event
        Ends the waiting and the reading when set.

    Raises
    ------
    StorageError
        If no try succeeds, the answer is no JSON, or is too large; or `stop` is set.
    """
    reason = ""
    for attempt in range(patience.tries):
        try:
            return _try_once(client, url, patience, stop)
        except _TryAgainError as error:
            reason = str(error)
            pause = min(max(patience.pause * 2**attempt, error.after), patience.longest_pause)
            if attempt + 1 < patience.tries and stop.wait(pause):
                raise StorageError(f"{url}: stopped") from None
    raise StorageError(f"{url}: {reason} ({patience.tries} tries)")


def _try_once(client: httpx.Client, url: str, patience: Patience, stop: threading.Event) -> bytes | None:
    try:
        with client.stream("GET", url) as response:
            if response.status_code in NOT_THERE:
                return None
            if response.status_code in _TRANSIENT:
                after = response.headers.get("Retry-After", "")
                raise _TryAgainError(
                    f"the server answers {response.status_code}", float(after) if after.isdecimal() else 0.0
                )
            if response.status_code != httpx.codes.OK:
                raise StorageError(f"{url}: the server answers {response.status_code}")
            body = _body(response, url, patience, stop)
    except httpx.TimeoutException:
        raise _TryAgainError("the server does not answer in time") from None
    except httpx.ConnectError as error:
        raise _TryAgainError(
            f"{httpx.URL(url).host} cannot be reached ({error}); is there a network? Then the same command "
            "again"
        ) from None
    except httpx.HTTPError as error:
        raise _TryAgainError(f"the connection broke: {error}") from None
    return _json_text(body, url, patience.max_bytes)


def _body(response: httpx.Response, url: str, patience: Patience, stop: threading.Event) -> bytes:
    """Bytes as sent, as long as they come fast enough."""
    body, began = bytearray(), time.monotonic()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > patience.max_bytes:
            raise _too_large(url, patience.max_bytes)
        if time.monotonic() - began > patience.timeout:
            raise _TryAgainError(f"{len(body):,} bytes in {patience.timeout:g} s and no end")
        if stop.is_set():
            raise StorageError(f"{url}: stopped")
    return bytes(body)


def _json_text(body: bytes, url: str, max_bytes: int) -> bytes:
    if body.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as packed:
                body = packed.read(max_bytes + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise _TryAgainError(f"what came is broken or cut off: {error}") from None
        if len(body) > max_bytes:
            raise _too_large(url, max_bytes)
    _parsed(body)
    return body


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _TryAgainError(f"what came is not JSON ({error}); is a login page in between?") from None


def _too_large(url: str, max_bytes: int) -> StorageError:
    return StorageError(f"{url} holds more than {max_bytes:,} bytes; if that is right, raise the limit")
