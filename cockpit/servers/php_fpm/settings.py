"""Settings of PHP-FPM's pools and of OPcache: https://www.php.net/manual/en/install.fpm.configuration.php"""

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_most
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, choice, integer, quantity

_TIME = quantity("a time", "10s", "s m h d")
_BOOLEAN = ValueForm("1 or 0", frozenset({"1", "0", "on", "off", "yes", "no", "true", "false"}).__contains__)

_CHILDREN = """
count=0
for child in $(children "$pid"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in "php-fpm: pool $section "*) count=$((count + 1)) ;; esac
done
echo "$count"
"""

SETTINGS = {
    "pm": KnownSetting(
        "number of processes of a pool: static is fixed, dynamic follows the load, ondemand keeps none when idle",
        choice("static", "dynamic", "ondemand"),
    ),
    "pm.max_children": KnownSetting(
        "maximum concurrent requests; more wait in the listen queue, each process takes memory",
        integer(1),
        shown=Evidence("its processes", _CHILDREN, at_most),
    ),
    "pm.start_servers": KnownSetting("processes at startup (dynamic); matters for the first seconds", integer(1)),
    "pm.min_spare_servers": KnownSetting("minimum idle processes (dynamic); more absorb bursts", integer(1)),
    "pm.max_spare_servers": KnownSetting("maximum idle processes (dynamic); too low means forks", integer(1)),
    "pm.max_requests": KnownSetting("requests after which a process is replaced, 0: never; bounds leaks", integer()),
    "pm.process_idle_timeout": KnownSetting(
        "idle time after which a process exits (ondemand); short saves memory, long saves forks", _TIME
    ),
    # A reload keeps the listening sockets with their queues.
    "listen.backlog": KnownSetting(
        "length of the listen queue; matters when all processes are busy",
        integer(1),
        Impact.RESTART,
        shown=LISTEN_QUEUE,
    ),
    "request_terminate_timeout": KnownSetting("maximum time of a request, 0: no limit; its process is killed", _TIME),
    "request_slowlog_timeout": KnownSetting(
        "time after which a request is logged in the slow log, 0: never; shows where slow scripts wait", _TIME
    ),
    "opcache.enable": KnownSetting("caches compiled scripts in memory; off: each request compiles them", _BOOLEAN),
    "opcache.memory_consumption": KnownSetting(
        "memory for compiled scripts (MiB); if it is full, other scripts are compiled per request", integer(8)
    ),
    "opcache.interned_strings_buffer": KnownSetting(
        "memory for strings shared by all processes (MiB); too small: each process has copies", integer(0, 32767)
    ),
    "opcache.max_accelerated_files": KnownSetting(
        "maximum number of cached scripts; should exceed those of the application", integer(200, 1000000)
    ),
    "opcache.validate_timestamps": KnownSetting(
        "1: checks scripts for changes, a stat per script and request; 0: new code needs a reload", _BOOLEAN
    ),
    "opcache.revalidate_freq": KnownSetting(
        "seconds between checks of a script for changes; 0: each request", integer()
    ),
    "opcache.jit_buffer_size": KnownSetting(
        "memory for machine code, 0: no JIT; matters for CPU-bound scripts, not for I/O",
        quantity("a size", "64M", "k m g"),
    ),
}
