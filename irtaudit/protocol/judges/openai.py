"""The judge behind any OpenAI-compatible server: base URL and key from the environment, never written out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, TypeVar

import httpx

from irtaudit.errors import PlanError, StorageError
from irtaudit.protocol.answers import answer_schema
from irtaudit.protocol.judges.budget import Budget
from irtaudit.protocol.judges.case import Judge, NoAnswerError
from irtaudit.protocol.judges.conversation import (
    READ_TOOL,
    Completion,
    ToolCall,
    Turn,
    converse,
    prompt_sha256,
)

Result = TypeVar("Result")

DEFAULT_URL = "https://api.openai.com/v1"
MAX_RESPONSE = 8 * 2**20
_WORTH_RETRYING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0


def openai_judge(
    model: str,
    *,
    base_url: str | None = None,
    budget: Budget | None = None,
    timeout: float = 120.0,
    tries: int = 4,
    sleep: Callable[[float], None] = time.sleep,
    environment: Mapping[str, str] = os.environ,
) -> Judge:
    """The judge "openai".

    Parameters
    ----------
    model : str
        As the server names it.
    base_url : str, optional
        Root of the API, before ``/chat/completions``; ``OPENAI_BASE_URL`` unless given.
    budget : Budget, optional
        Shared meter and limit.
    timeout : float
        Seconds that one answer may take in all, however slowly it arrives.
    tries : int
        Requests per answer, for time-outs, 429 and 5xx; waits double, or are what the server asks for.
    sleep : callable
        Waits.
    environment : mapping
        Where the key (``OPENAI_API_KEY``) and the base URL are looked up.

    Raises
    ------
    PlanError
        If there is no key and the server is not on this machine, or the URL is not http(s).
    """
    url = _url((base_url or environment.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/"))
    key = environment.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise PlanError("OPENAI_API_KEY holds characters that no key has; copy it anew")
    if not key and url.host not in ("localhost", "127.0.0.1", "::1"):
        raise PlanError(
            f"no key for {url.host}: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server of your own)"
        )
    server = _Server(url, key, timeout, tries, sleep, budget or Budget())
    return Judge(
        name="openai",
        ask=lambda case: converse(case, lambda turns, tools: server.complete(model, turns, tools)),
        model=model,
        prompt_sha256=prompt_sha256(),
        remembered=True,
    )


def _url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise PlanError(f"the base URL is none: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise PlanError(f"base URL {url.copy_with(userinfo=b'')} is not one of http or https with a host")
    return url


class _Server:
    """A connection that retries, keeps to deadlines and remembers whether the server knows schemas."""

    def __init__(
        self,
        url: httpx.URL,
        key: str,
        timeout: float,
        tries: int,
        sleep: Callable[[float], None],
        budget: Budget,
    ) -> None:
        self._shown_url = str(url.copy_with(userinfo=b""))
        self._url = f"{url}/chat/completions"
        self._timeout, self._tries, self._sleep, self._budget = timeout, tries, sleep, budget
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=timeout, follow_redirects=False
        )
        self._schemas = True

    def complete(self, model: str, turns: Sequence[Turn], tools: bool) -> Completion:
        """The next completion, after as many tries as are allowed."""
        body: dict[str, Any] = {"model": model, "messages": [_message(turn) for turn in turns]}
        if tools:
            body["tools"] = [{"type": "function", "function": dict(READ_TOOL)}]
        return _completion(self._post(body), self._budget)

    def _post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        wait, why = 0.5, ""
        for attempt in range(self._tries):
            if attempt:
                self._sleep(min(wait, _LONGEST_WAIT))
                wait *= 2
            self._budget.start()
            try:
                asking = partial(self._once, self._with_schema(body))
                status, content, asked = _within(self._timeout, asking)
            except (httpx.TransportError, httpx.StreamError, TimeoutError) as error:
                why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                continue
            if status == 200:
                found = _object(content)
                if found is not None:
                    return found
                why = "a response that is not a JSON object"
            elif status == 400 and self._schemas and b"response_format" in content:
                self._schemas = False
                why = "the server knows no response_format"
                wait = 0.0
            elif status in _WORTH_RETRYING:
                why, wait = f"status {status}", max(wait, asked)
            else:
                self._give_up(status)
        raise NoAnswerError(f"the server gave no answer in {self._tries} tries; the last: {why}")

    def _with_schema(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._schemas:
            return body
        schema = {"name": "answer", "schema": answer_schema(), "strict": True}
        return {**body, "response_format": {"type": "json_schema", "json_schema": schema}}

    def _once(self, body: Mapping[str, Any]) -> tuple[int, bytes, float]:
        """Status, content and the wait the server asks for, within the size allowed."""
        end = time.monotonic() + self._timeout
        content = b""
        with self._client.stream("POST", self._url, json=body) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > end:  # nobody waits any more
                    raise TimeoutError
                if len(content) > MAX_RESPONSE:
                    raise NoAnswerError(f"the server sent more than {MAX_RESPONSE:,} bytes")
            return response.status_code, content, _seconds(response.headers.get("retry-after"))

    def _give_up(self, status: int) -> None:
        """End the audit where no candidate can be answered, and this candidate otherwise."""
        if status in (401, 403, 404) or 300 <= status < 400:
            reason = {401: "refuses the key", 403: "refuses the key", 404: "has no such model or path"}
            raise StorageError(
                f"{self._shown_url} {reason.get(status, 'redirects elsewhere')} (status {status}); "
                "check OPENAI_BASE_URL, OPENAI_API_KEY and --model"
            )
        raise NoAnswerError(f"the server refused the request (status {status})")


def _within(seconds: float, work: Callable[[], Result]) -> Result:
    """The result of work that may take so long and no longer, whatever it waits for.

    The client's own time-outs are for one piece of a response each; a server may send endless small ones.
    """
    waited: Future[Result] = Future()

    def run() -> None:
        try:
            waited.set_result(work())
        except Exception as error:  # it is raised again where the result is waited for
            waited.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return waited.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"more than {seconds:g} s for one answer") from None


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in turn.calls
        ]
    if turn.call_id:
        message["tool_call_id"] = turn.call_id
    return message


def _object(content: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _completion(found: Mapping[str, Any], budget: Budget) -> Completion:
    usage = found.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = _count(counted.get("prompt_tokens")), _count(counted.get("completion_tokens"))
    budget.add(tokens_in, tokens_out)
    try:
        message = found["choices"][0]["message"]
        calls = tuple(
            ToolCall(
                str(call["id"]), str(call["function"]["name"]), str(call["function"].get("arguments") or "{}")
            )
            for call in message.get("tool_calls") or ()
        )
        text = message.get("content") or ""
    except (KeyError, IndexError, TypeError, AttributeError):
        raise NoAnswerError("the server's response has no message") from None
    return Completion(text if isinstance(text, str) else json.dumps(text), calls, tokens_in, tokens_out)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0
