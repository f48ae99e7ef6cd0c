"""Settings of gunicorn: https://docs.gunicorn.org/en/stable/settings.html"""

from cockpit.servers.settings import Impact, KnownSetting, ValueForm, choice, integer

_SECONDS = integer()
_CLASSES = ("sync", "gthread", "gevent", "eventlet", "tornado")
# A class may also be named by its module.
_CLASS = ValueForm(
    f"one of {', '.join(_CLASSES)}, or module.Class",
    lambda value: value in _CLASSES or (value.isascii() and "." in value and value.replace(".", "").isidentifier()),
)

SETTINGS = {
    "workers": KnownSetting("processes that serve requests; about 2 per CPU, each takes memory", integer(1)),
    "threads": KnownSetting("threads of a worker (gthread); matters if requests wait for I/O", integer(1)),
    "worker_class": KnownSetting(
        "how a worker serves requests: sync one at a time, gthread with threads; matters if they wait for I/O", _CLASS
    ),
    "worker_connections": KnownSetting(
        "maximum connections of a worker (gthread, gevent, eventlet); more wait in the accept queue", integer(1)
    ),
    "keepalive": KnownSetting(
        "seconds that an idle connection is kept (not by sync); matters with few, busy clients", _SECONDS
    ),
    "max_requests": KnownSetting("requests after which a worker is replaced, 0: never; bounds leaks", integer()),
    "max_requests_jitter": KnownSetting(
        "random share of max_requests; without it all workers end at the same time", integer()
    ),
    "timeout": KnownSetting(
        "seconds of silence after which a worker is killed, 0: never; short cuts slow requests off", _SECONDS
    ),
    "graceful_timeout": KnownSetting("seconds that a worker may take to end; a reload lasts as long", _SECONDS),
    "preload_app": KnownSetting(
        "loads the application before the workers fork; saves memory, and time at the start of a worker",
        choice("True", "False"),
    ),
    "backlog": KnownSetting(
        "length of the accept queue; matters when all workers are busy", integer(1), Impact.RESTART
    ),
}
