"""MariaDB: files and socket from the command line, variables, status."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.kind import RunningServer
from tests.servers.found import running

FILES = "file\t/etc/mysql/my.cnf\nfile\t/run/mysqld/mysqld.sock\n"


def discover(*options: str, files: str = FILES) -> RunningServer:
    line = "".join(f"\t{option}" for option in options)
    text = (
        f"user\troot\nprocess\t9\t1\tmariadbd\t/usr/sbin/mariadbd{line}\t\n"
        "master\t9\t/usr/sbin/mariadbd\t/srv\tyes\t\thost\n"
    )
    (server,) = running(text + files)
    return server


def test_packaged_server_has_file_and_socket() -> None:
    server = discover("--basedir=/usr", "--user", "mysql")
    knob = next(candidate for candidate in server.candidates if candidate.name == "max_connections")
    assert (knob.file, knob.section, knob.usual) == ("/etc/mysql/my.cnf", "mysqld", True)
    assert knob.test.startswith("out=$(/usr/sbin/mariadbd --help --verbose 2>&1 >/dev/null)") and knob.reload == ""
    assert knob.get.endswith('--socket=/run/mysqld/mysqld.sock -NBe "SELECT @@global.max_connections"')
    assert [page.url for page in server.status] == ["unix:/run/mysqld/mysqld.sock"]
    names = {candidate.name for candidate in discover("--max-connections=7", "--wait_timeout", "5").candidates}
    assert "innodb_buffer_pool_size" in names and not {"max_connections", "wait_timeout"} & names


@pytest.mark.parametrize(
    ("options", "files", "sockets"),
    [
        (("--defaults-file=/srv/db/my.cnf", "--socket=/srv/db/s"), ("/srv/db/my.cnf",), 1),
        (("--defaults-file=my.cnf", "--socket", "s"), ("/srv/my.cnf",), 1),
        (("--defaults-file=/srv/db/my.cnf",), ("/srv/db/my.cnf",), 0),
        (("--no-defaults", "--socket=/srv/db/s"), (), 0),
    ],
)
def test_other_file_or_socket_is_found(options: tuple[str, ...], files: tuple[str, ...], sockets: int) -> None:
    server = discover(*options)
    assert server.startup is not None and server.startup.files == files
    assert bool(server.candidates) is bool(sockets)


def test_sizes_are_compared_in_bytes() -> None:
    size, kind = (
        registry.SETTINGS["mariadb"]["innodb_buffer_pool_size"],
        registry.SETTINGS["mariadb"]["query_cache_type"],
    )
    assert [size.as_printed(value) for value in ("128M", "1g", "64", "x")] == ["134217728", "1073741824", "64", "x"]
    assert kind.as_printed("on") == "ON"


def test_status_is_parsed() -> None:
    page = registry.STATUS_PAGES["mariadb"]
    values, text = page.parse("Threads_connected\t3\nQueries\t1234\nInnodb_buffer_pool_dump_status\tdone\nUptime\t9\n")
    assert (values["Threads_connected"], values["Queries"]) == (3, 1234)
    assert text == {"Innodb_buffer_pool_dump_status": "done"}
    assert page.is_counter("Queries") and not page.is_counter("Threads_running")
    # Pages of the buffer pool are gauges, and what was done with them is counted.
    counters = {
        name
        for name in ("flushed", "made_young", "lru_freed", "data", "dirty", "total")
        if page.is_counter(f"Innodb_buffer_pool_pages_{name}")
    }
    assert counters == {"flushed", "made_young", "lru_freed"}
