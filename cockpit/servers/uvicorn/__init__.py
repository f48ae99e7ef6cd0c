"""uvicorn: options on its command line, or in its environment as UVICORN_NAME."""

from __future__ import annotations

from cockpit.servers.kind import StartSetting, command_line_kind
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, choice, integer
from cockpit.servers.uvicorn.logs import PARTIAL_LOG


def _setting(
    name: str, default: str, help_line: str, form: ValueForm, *, usual: bool = False, fallback: str = ""
) -> StartSetting:
    """Return a setting of https://www.uvicorn.org/settings/."""
    known = KnownSetting(help_line, form, Impact.RESTART)
    return StartSetting(
        name, known, (f"--{name.replace('_', '-')}",), f"UVICORN_{name.upper()}", fallback, default, usual
    )


_NONE = "none"
AT_START = (
    _setting(
        "workers",
        "1",
        "processes that serve requests; matters if one CPU is busy",
        integer(1),
        usual=True,
        fallback="WEB_CONCURRENCY",
    ),
    _setting(
        "backlog", "2048", "length of the accept queue; matters when all workers are busy", integer(1), usual=True
    ),
    _setting(
        "timeout_keep_alive", "5", "maximum idle time of a connection (s); matters with few, busy clients", integer()
    ),
    _setting("limit_concurrency", _NONE, "maximum connections, more get a 503; keeps response times short", integer(1)),
    _setting("limit_max_requests", _NONE, "requests after which a worker exits; bounds leaks", integer(1)),
    _setting("loop", "auto", "event loop; uvloop is faster if installed", choice("auto", "asyncio", "uvloop")),
    _setting("http", "auto", "HTTP parser; httptools is faster if installed", choice("auto", "h11", "httptools")),
)
KIND = command_line_kind("uvicorn", "uvicorn", "uvicorn", at_start=AT_START, partial_log=PARTIAL_LOG)
