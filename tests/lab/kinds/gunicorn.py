"""gunicorn with its default configuration file, and a second master with a file by -c."""

from tests.data import data_of
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import accept_queue, after_silence, get, restarted, while_open, written

DATA = data_of(__file__)

PORT = 8086
APP = DATA["app"]
_CONFIG = """\
# The file of the lab.
workers = 2  # one per CPU
worker_class = "sync"
"""
_CHILDREN = "pgrep -c -P $(cat /run/{}.pid)"
_ASK = f"curl -sS --fail http://localhost:{PORT}/"

# Whether more threads than the workers of both settings serve requests at the same time.
_THREADS = f"""
    {{ for n in 1 2 3 4 5 6 7 8 9; do {{ {_ASK}?0.3; echo; }} & done; wait; }} | awk '{{ seen[$1 $4] }}
        END {{ n = length(seen); print (n > 5 ? "many" : "few") }}'
"""
_PROCESSES = f"for n in 1 2 3 4 5 6; do {_ASK}; echo; done | cut -d ' ' -f 1 | sort -u | wc -l"
_START = "cd /srv/{0} && PYTHONDONTWRITEBYTECODE=1 gunicorn -D -p /run/{0}.pid -b 0.0.0.0:{1} {2} app:application"
_FIRST = _START.format("gunicorn", PORT, "")
RESTART = restarted("/run/gunicorn.pid", _FIRST, _ASK)
# Words of a response that takes three seconds, from a server that is stopped meanwhile.
_CUT = f"""
    {{ {_ASK}?3 2>/dev/null | wc -w >/run/words; }} &
    until [ "$(ss -Htn state established dport = :{PORT})" ]; do sleep 0.02; done
    {RESTART}; wait; cat /run/words
"""
_ACCEPTED = while_open(PORT, 20, f"ss -Htnp state established sport = :{PORT} | grep -c users:")
CASE = KindCase(
    name="gunicorn",
    title="gunicorn",
    port=PORT,
    start=f"""
        install -d /srv/gunicorn /srv/gunicorn2
        printf %s '{APP}' | tee /srv/gunicorn/app.py >/srv/gunicorn2/app.py
        printf %s '{_CONFIG}' | tee /srv/gunicorn/gunicorn.conf.py >/srv/gunicorn2/second.py
        {_FIRST}
        {_START.format("gunicorn2", PORT + 1, "-c second.py")}
        for i in $(seq 200); do {_ASK} && curl -sS --fail http://localhost:{PORT + 1}/ && break; sleep 0.05; done
    """,
    stop="""
        kill $(cat /run/gunicorn.pid /run/gunicorn2.pid)
        while pgrep gunicorn; do sleep 0.02; done
    """,
    second="pgrep -P $(cat /run/gunicorn2.pid) | sort",
    places="/srv/gunicorn /srv/gunicorn2",
    changes=(
        Change("workers", "3", _CHILDREN.format("gunicorn"), "3"),
        Change("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
        Change("threads", "3", _THREADS, "many"),
        Change("keepalive", "30", after_silence(PORT, 3, get("/")), "open"),
        Change("preload_app", "True", f"{_ASK} | cut -d ' ' -f 3", "False"),
        # Nothing in a running master shows it.
        Change("max_requests_jitter", "9", written("max_requests_jitter = 9", "/srv/gunicorn/gunicorn.conf.py"), "1"),
    ),
    later=(
        (
            Change("max_requests", "1", _PROCESSES, "6"),
            # A worker that sleeps for longer is killed.
            Change("timeout", "2", f"{_ASK}?4 | wc -w", "0"),
        ),
        (
            Change("workers", "1", _CHILDREN.format("gunicorn"), "1"),
            Change("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
            Change("worker_connections", "7", _ACCEPTED, "7"),
            Change("graceful_timeout", "1", _CUT, "0"),
            # Active after a restart only.
            Change("backlog", "99", f"{RESTART}; {accept_queue(PORT)}", "99"),
        ),
    ),
    shown=("workers",),
    malformed=("workers", "many", "workers takes a whole number of at least 1, not 'many'"),
    failing=("worker_class", "nosuch.Class", "nosuch"),
    apart=(Change(f"workers-{PORT + 1}", "3", _CHILDREN.format("gunicorn2"), "3"),),
)
