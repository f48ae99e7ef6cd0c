"""Settings of PHP-FPM's pools and of OPcache: https://www.php.net/manual/en/install.fpm.configuration.php"""

from cockpit.servers.settings import Impact, KnownSetting, ValueForm, choice, integer, quantity

_TIME = quantity("a time", "10s", "s m h d")
_BOOLEAN = ValueForm("1 or 0", frozenset({"1", "0", "on", "off", "yes", "no", "true", "false"}).__contains__)

SETTINGS = {
    "pm": KnownSetting(
        "number of processes of a pool: static is fixed, dynamic follows the load, ondemand is none when idle",
        choice("static", "dynamic", "ondemand"),
    ),
    "pm.max_children": KnownSetting(
        "requests served at the same time; more wait in the listen queue, each process takes memory", integer(1)
    ),
    "pm.start_servers": KnownSetting("processes at the start (dynamic); matters for the first seconds", integer(1)),
    "pm.min_spare_servers": KnownSetting("idle processes kept ready (dynamic); more absorb bursts", integer(1)),
    "pm.max_spare_servers": KnownSetting("idle processes above it end (dynamic); too low means forks", integer(1)),
    "pm.max_requests": KnownSetting("requests after which a process is replaced, 0: never; bounds leaks", integer()),
    "pm.process_idle_timeout": KnownSetting(
        "idle time after which a process ends (ondemand); short saves memory, long saves forks", _TIME
    ),
    # The sockets, and with them their queues, are kept over a reload.
    "listen.backlog": KnownSetting(
        "length of the listen queue; matters when all processes are busy", integer(1), Impact.RESTART
    ),
    "request_terminate_timeout": KnownSetting("maximum time of a request, 0: none; its process is killed", _TIME),
    "request_slowlog_timeout": KnownSetting(
        "time after which a request is logged in the slow log, 0: never; shows where slow scripts wait", _TIME
    ),
    "opcache.enable": KnownSetting("keeps compiled scripts in memory; without it each request compiles", _BOOLEAN),
    "opcache.memory_consumption": KnownSetting(
        "MiB for compiled scripts; further ones are compiled each time", integer(8)
    ),
    "opcache.interned_strings_buffer": KnownSetting(
        "MiB for strings that all processes share; too few are copied into each process", integer(0, 32767)
    ),
    "opcache.max_accelerated_files": KnownSetting(
        "scripts that can be kept; more than the application has", integer(200, 1000000)
    ),
    "opcache.validate_timestamps": KnownSetting(
        "1 checks scripts for changes, a stat per script and request; after 0 new code needs a reload", _BOOLEAN
    ),
    "opcache.revalidate_freq": KnownSetting("seconds between two checks of a script; 0: at each request", integer()),
    "opcache.jit_buffer_size": KnownSetting(
        "memory for machine code, 0: no JIT; matters for computation, not for I/O", quantity("a size", "64M", "k m g")
    ),
}
