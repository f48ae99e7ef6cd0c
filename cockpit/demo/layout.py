"""The files in the demo's private directory, and their initial content."""

import os
import time
from pathlib import Path

# Pages/s of the demo's server on any machine: children, which exit after 20 requests, would exit several times as fast
# as a prefork server can spawn them.
_PAGES_PER_SECOND = 3000
# The demo's load has 20 connections; more CPUs do not raise the rate.
_MAX_CPUS = 20

_CONFIG = """\
# The demo's web server: a subset of Apache's directives. Port 0 is any free port.
Listen 127.0.0.1:0
DocumentRoot {document_root}
PidFile {pid_file}
ErrorLog {error_log}
KeepAlive On
KeepAliveTimeout 5
# Kilobytes of text compressed for each page, in place of the work of a script.
PageCost {page_cost}

<IfModule prefork>
    StartServers          5
    MinSpareServers       5
    MaxSpareServers      10
    MaxClients          150
    MaxRequestsPerChild 20
</IfModule>
"""


class DemoFiles:
    """Paths of a demo in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config_file = directory / "httpd.conf"
        self.document_root = directory / "htdocs"
        self.error_log = directory / "error.log"
        self.pid_file = directory / "httpd.pid"
        self.host_key = directory / "host_key"
        self.client_key = directory / "client_key"
        self.authorized_keys = directory / "authorized_keys"
        self.known_hosts = directory / "known_hosts"
        self.ssh_config = directory / "ssh_config"

    def write_site(self) -> None:
        """Write the web server's configuration and its one page of 92 bytes."""
        from cockpit.demo.webchild import PAGE

        self.document_root.mkdir()
        (self.document_root / "hello.html").write_bytes(PAGE)
        self.config_file.write_text(
            _CONFIG.format(
                document_root=f'"{self.document_root}"',
                pid_file=f'"{self.pid_file}"',
                error_log=f'"{self.error_log}"',
                page_cost=_page_cost(),
            )
        )


def _page_cost() -> int:
    """Return the kilobytes per page at which all CPUs together serve _PAGES_PER_SECOND."""
    from cockpit.demo.webchild import work

    kilobytes = 10
    seconds = []
    for _ in range(100):  # the minimum of many short samples is free of other load
        begin = time.process_time()
        work(kilobytes)
        seconds.append(time.process_time() - begin)
    cpus = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MAX_CPUS)
    return max(1, round(cpus / _PAGES_PER_SECOND / (min(seconds) / kilobytes)))
