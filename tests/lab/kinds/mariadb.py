"""MariaDB with Debian's option files and a copy of its data, and a second server with an option file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase

_SECOND = "[mysqld]\\ndatadir=/srv/db2\\npid-file=/srv/db2/db.pid\\nport=3307\\nmax_connections=77\\n"
_CLIENT = "mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -NBe '{}'"
_ON_SECOND = _CLIENT.replace("/run/mysqld/mysqld.sock", "/srv/db2/db.sock")
_SMALL = "--innodb-buffer-pool-size=16M"


def _global(name: str) -> str:
    return _CLIENT.format(f"SELECT @@global.{name}")


CASE = KindCase(
    name="mariadb",
    title="MariaDB",
    port=3306,
    start=f"""
        install -d -o mysql /run/mysqld /var/log/mysql
        for copy in db1 db2; do [ -e /srv/$copy ] || cp -a --sparse=always /var/lib/mysql /srv/$copy; done
        install -d /srv/mariadb
        printf '{_SECOND}' >/srv/mariadb/my.cnf
        exec >/dev/null 2>&1 </dev/null
        setsid mariadbd --user=mysql --datadir=/srv/db1 --log-error=/var/log/mysql/error.log &
        setsid mariadbd --defaults-file=/srv/mariadb/my.cnf --user=mysql --socket=/srv/db2/db.sock {_SMALL} \\
            --log-error=/srv/db2/error.log &
        for socket in /run/mysqld/mysqld.sock /srv/db2/db.sock; do
            until mariadb-admin --no-defaults --socket=$socket ping; do sleep 0.05; done
        done
    """,
    stop="while pkill -TERM -x mariadbd; do sleep 0.05; done",
    second=_ON_SECOND.format("SELECT @@global.max_connections"),
    places="/etc/mysql /srv/mariadb",
    changes=(
        Change("max_connections", "123", _global("max_connections"), "123"),
        Change("thread_cache_size", "17", _global("thread_cache_size"), "17"),
        Change("table_open_cache", "333", _global("table_open_cache"), "333"),
        Change("innodb_buffer_pool_size", "48M", _global("innodb_buffer_pool_size"), str(48 << 20)),
        Change("query_cache_size", "2M", _global("query_cache_size"), str(2 << 20)),
        Change("query_cache_limit", "512K", _global("query_cache_limit"), str(512 << 10)),
        Change("max_allowed_packet", "8M", _global("max_allowed_packet"), str(8 << 20)),
        Change("wait_timeout", "777", _global("wait_timeout"), "777"),
        Change("query_cache_type", "ON", _global("query_cache_type"), "ON"),
    ),
    malformed=("max_connections", "many", "max_connections takes a whole number from 10 to 100000, not 'many'"),
    failing=("max_connections", "99", "unknown variable 'no_such_variable=99'"),
    unchecked="no_such_variable",
    apart=(Change("max_connections-3307", "88", _ON_SECOND.format("SELECT @@global.max_connections"), "88"),),
    page=StatusPage(kind="mariadb", url="unix:/run/mysqld/mysqld.sock"),
    own=_CLIENT.format('SHOW GLOBAL STATUS LIKE "Threads_connected"') + " | tr '\\t' =",
    load=_CLIENT.format("SELECT 1"),
)
