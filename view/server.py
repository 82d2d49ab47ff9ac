"""The server behind the page. Needs `pip install 'c4-dlm[view]'`.

The server listens on loopback, or on another address behind a token. It refuses requests whose Host
header names another machine and requests that come from another site's page, so that no other site
can read recordings through a user's browser.
"""

import hmac
import ipaddress
import json
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from c4.errors import C4Error, ConfigError
from c4.view.cohort import cohort_message
from c4.view.listing import Query, list_message, marks_message
from c4.view.page import PAGE, read_static, static_names
from c4.view.trajectory import answer_message, run_at, trajectory_message
from c4.view.viewer import RunCache, Viewer

log = logging.getLogger(__name__)

COOKIE = "c4-view"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy: the page may load and run only its own files."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_ROWS = 500
"""Most rows of the list that one request may ask for."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Guard:
    """Middleware that refuses foreign requests and those without the token, and adds `HEADERS`."""

    def __init__(self, app: ASGIApp, token: str | None, names: Iterable[str]) -> None:
        self.app = app
        self.token = token
        self.names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        await (self._refusal(Request(scope)) or self.app)(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if not is_own_name(host, self.names):
            return _refuse(f"this viewer does not answer to the name {host!r}")
        origin = request.headers.get("origin")
        foreign = origin is not None and _split(origin).netloc != host
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            navigates = request.headers.get("sec-fetch-mode") == "navigate"
            foreign |= not (navigates and request.method == "GET" and request.url.path == "/")
        if foreign:
            return _refuse("requests from other sites are refused")
        if self.token is None:
            return None
        given = request.query_params.get("token")
        if given is not None and hmac.compare_digest(given.encode(), self.token.encode()):
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            return answer
        kept = request.cookies.get(COOKIE, "")
        if hmac.compare_digest(kept.encode(), self.token.encode()):
            return None
        return _refuse("open the address with its token, as `c4 view` printed it")


def is_own_name(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header names this machine, by IP address or by one of `names`.

    The port is not compared, because a tunnel has its own.
    """
    name = _split(f"//{host}").hostname or ""
    if name in names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not names <= set(LOOPBACK)


def _split(address: str) -> SplitResult:
    """Split an address into its parts; all are empty if it is malformed."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _refuse(reason: str) -> Response:
    return JSONResponse({"error": reason}, status_code=403)


Answer = Callable[[Viewer, Request], Any]


def _overview(viewer: Viewer, _: Request) -> Any:
    viewer.refresh()
    return viewer.describe()


def _list(viewer: Viewer, request: Request) -> Any:
    asked = request.query_params
    query = Query(
        tasks=asked.getlist("task"),
        methods=asked.getlist("method"),
        verdict=asked.get("verdict", ""),
        exits=asked.get("exits", ""),
        gate=asked.get("gate", viewer.menu.names[0]),
        search=asked.get("q", ""),
        sort=asked.get("sort", "recorded"),
        descending=asked.get("desc") == "1",
        settings=viewer.menu.read_settings(asked.getlist("set")),
    )
    start, count = _whole(request, "start", 0), _whole(request, "count", 100)
    return list_message(viewer, query, start, min(count, MOST_ROWS))


def _marks(viewer: Viewer, request: Request) -> Any:
    numbers = [int(number) for number in request.query_params.getlist("t")]
    keys = list(zip(request.query_params.getlist("run"), numbers, strict=True))
    return marks_message(viewer, keys[:MOST_ROWS], _settings(viewer, request))


def _trajectory(viewer: Viewer, request: Request) -> Any:
    cache, index = _asked(viewer, request)
    return trajectory_message(cache, index, viewer.menu, _settings(viewer, request))


def _answer(viewer: Viewer, request: Request) -> Any:
    cache, index = _asked(viewer, request)
    return answer_message(cache, index, viewer.menu, _settings(viewer, request))


def _cohort(viewer: Viewer, request: Request) -> Any:
    cache = viewer.cache(request.query_params["run"])
    gates = request.query_params.getlist("gate") or viewer.menu.names
    points = request.query_params.get("points") == "1"
    settings = _settings(viewer, request)
    return cohort_message(viewer.cohort(cache), gates, settings, with_points=points)


def _grade(viewer: Viewer, request: Request) -> Any:
    return run_at(viewer, *_asked(viewer, request), _whole(request, "step"))


def _asked(viewer: Viewer, request: Request) -> tuple[RunCache, int]:
    """Return the run and the number of the trajectory that a request names."""
    return viewer.cache(request.query_params["run"]), _whole(request, "t")


def _settings(viewer: Viewer, request: Request) -> dict[str, dict[str, str]]:
    return viewer.menu.read_settings(request.query_params.getlist("set"))


def _whole(request: Request, name: str, default: int | None = None) -> int:
    text = request.query_params.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit():
        raise ConfigError(f"{name} is a whole number, not {text!r}")
    return int(text)


QUESTIONS: dict[str, tuple[str, Answer]] = {
    "overview": ("GET", _overview),
    "list": ("GET", _list),
    "marks": ("GET", _marks),
    "trajectory": ("GET", _trajectory),
    "answer": ("GET", _answer),
    "cohort": ("GET", _cohort),
    "grade": ("POST", _grade),
}
"""The page's API: HTTP method and handler by name."""


def make_app(
    viewer: Viewer, *, token: str | None = None, names: Iterable[str] = LOOPBACK
) -> ASGIApp:
    """Return the application, wrapped in its guard."""
    routes = [
        Route(f"/api/{name}", _endpoint(viewer, answer), methods=[method])
        for name, (method, answer) in QUESTIONS.items()
    ]
    routes += [Route(f"/static/{name}", _static(name)) for name in static_names()]
    routes.append(Route("/", _static(PAGE)))
    return Guard(Starlette(routes=routes), token, names)


def _endpoint(viewer: Viewer, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            found = await run_in_threadpool(answer, viewer, request)
        except (C4Error, OSError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except (KeyError, ValueError) as error:
            reason = f"invalid request: {error}"
            return JSONResponse({"error": reason}, status_code=400)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream")
        return Response(json.dumps(found), media_type="application/json")

    return endpoint


def _static(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        content, kind = read_static(name)
        return Response(content, media_type=kind)

    return endpoint


class Server:
    """Server of the page, whose address is known before it serves."""

    def __init__(self, viewer: Viewer, host: str | None = None, port: int = 0) -> None:
        """Bind the port.

        Args:
            host: the address to listen on; loopback if None. Requests to any other need a token.
        """
        self.host = host or "127.0.0.1"
        self.token = None if self.host in LOOPBACK else secrets.token_urlsafe(24)
        names = {*LOOPBACK, self.host, socket.gethostname(), socket.getfqdn()}
        names = names if self.token else set(LOOPBACK)
        self._socket = _listen(self.host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            make_app(viewer, token=self.token, names=names), log_level="warning", log_config=None
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Address to open, with the token if there is one."""
        anywhere = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}  # noqa: S104
        name = anywhere.get(self.host, self.host)
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def serve(self) -> None:
        """Serve requests until interrupted."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Make `serve`, which another thread runs, return."""
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror}; give another --port, or none "
            "for a free one"
        ) from error
