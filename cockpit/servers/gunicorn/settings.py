"""gunicorn's settings: https://docs.gunicorn.org/en/stable/settings.html"""

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, choice, integer

_SECONDS = integer()
_CLASSES = ("sync", "gthread", "gevent", "eventlet", "tornado")
# Other classes are given as module.Class.
_CLASS = ValueForm(
    f"one of {', '.join(_CLASSES)}, or module.Class",
    lambda value: value in _CLASSES or (value.isascii() and "." in value and value.replace(".", "").isidentifier()),
)

SETTINGS = {
    "workers": KnownSetting(
        "processes that serve requests; about 2 per CPU, each takes memory",
        integer(1),
        shown=Evidence("its processes", 'children "$pid" | wc -l'),
    ),
    "threads": KnownSetting("threads of a worker (gthread); matters if requests wait for I/O", integer(1)),
    "worker_class": KnownSetting(
        "concurrency of a worker: sync one request at a time, gthread threads; matters if requests wait for I/O",
        _CLASS,
    ),
    "worker_connections": KnownSetting(
        "maximum connections of a worker (gthread, gevent, eventlet); more wait in the accept queue", integer(1)
    ),
    "keepalive": KnownSetting(
        "maximum idle time of a connection (s), not with sync; matters with few, busy clients", _SECONDS
    ),
    "max_requests": KnownSetting("requests after which a worker is replaced, 0: never; bounds leaks", integer()),
    "max_requests_jitter": KnownSetting(
        "random number of requests added to max_requests; without it all workers exit at the same time", integer()
    ),
    "timeout": KnownSetting(
        "seconds of silence after which a worker is killed, 0: never; short aborts slow requests", _SECONDS
    ),
    "graceful_timeout": KnownSetting("maximum time (s) for a worker to exit; bounds the time of a reload", _SECONDS),
    "preload_app": KnownSetting(
        "loads the application before the workers fork; saves memory, and starts workers faster",
        choice("True", "False"),
    ),
    "backlog": KnownSetting(
        "length of the accept queue; matters when all workers are busy", integer(1), Impact.RESTART, shown=LISTEN_QUEUE
    ),
}
