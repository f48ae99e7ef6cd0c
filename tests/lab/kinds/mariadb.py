"""MariaDB with Debian's option files and a copy of its data, and a second server with an option file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange

_SECOND = "[mysqld]\\ndatadir=/srv/db2\\npid-file=/srv/db2/db.pid\\nport=3307\\nmax_connections=77\\n"
_CLIENT = "mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -NBe '{}'"
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
        printf '{_SECOND}' >/srv/db2/my.cnf
        exec >/dev/null 2>&1 </dev/null
        setsid mariadbd --user=mysql --datadir=/srv/db1 --log-error=/var/log/mysql/error.log &
        setsid mariadbd --defaults-file=/srv/db2/my.cnf --user=mysql --socket=/srv/db2/db.sock {_SMALL} \\
            --log-error=/srv/db2/error.log &
        for socket in /run/mysqld/mysqld.sock /srv/db2/db.sock; do
            until mariadb-admin --no-defaults --socket=$socket ping; do sleep 0.05; done
        done
    """,
    stop="while pkill -TERM -x mariadbd; do sleep 0.05; done",
    second="mariadb --no-defaults --socket=/srv/db2/db.sock -NBe 'SELECT @@global.max_connections'",
    places="/etc/mysql /srv/db2/my.cnf",
    changes=(
        KindChange("max_connections", "123", _global("max_connections"), "123"),
        KindChange("thread_cache_size", "17", _global("thread_cache_size"), "17"),
        KindChange("table_open_cache", "333", _global("table_open_cache"), "333"),
        KindChange("innodb_buffer_pool_size", "48M", _global("innodb_buffer_pool_size"), str(48 << 20)),
        KindChange("query_cache_size", "2M", _global("query_cache_size"), str(2 << 20)),
        KindChange("query_cache_type", "ON", _global("query_cache_type"), "ON"),
    ),
    malformed=("max_connections", "many", "max_connections takes a whole number from 10 to 100000, not 'many'"),
    failing=("max_connections", "$none", "no value of a variable"),
    page=StatusPage(kind="mariadb", url="unix:/run/mysqld/mysqld.sock"),
    own=_CLIENT.format('SHOW GLOBAL STATUS LIKE "Threads_connected"') + " | tr '\\t' =",
    load=_CLIENT.format("SELECT 1"),
)
