"""Programs of web1 for shipped profiles of applications: a service `app`, whose variables are in /etc/default/app."""

from __future__ import annotations

from typing import NamedTuple

from tests.lab.kinds import gunicorn, mariadb, php_fpm

# `service` runs it on a host without systemd.
_SCRIPT = """\
#!/bin/sh
### BEGIN INIT INFO
# Provides: app
# Default-Start:
# Default-Stop:
### END INIT INFO
pid=/run/app.pid
stop() {{
    [ -s $pid ] || return 0
    kill -s TERM -- -$(cat $pid)
    for i in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- -$(cat $pid) || break; sleep 0.05; done
    while kill -s KILL -- -$(cat $pid); do sleep 0.02; done
    rm -f $pid
}}
start() {{
    set -a
    . /etc/default/app
    cd /srv/app || exit 1
    setsid {command} </dev/null >/var/log/app.log 2>&1 &
    echo $! >$pid
    until curl -sS --fail http://localhost:{port}/; do kill -0 $! || exit 1; sleep 0.05; done
}}
case $1 in
    start) start ;;
    stop) stop ;;
    restart) stop; start ;;
esac >/dev/null 2>&1
"""
_PAGE = """\
<?php
$db = new mysqli("localhost", "www-data");
$db->query("SELECT SLEEP(0.05)");
echo "ok";
"""
_USER = "CREATE USER IF NOT EXISTS \\`www-data\\`@localhost IDENTIFIED VIA unix_socket"


class Program(NamedTuple):
    """Commands that start and stop it, and may be repeated; `places` hold the files of its settings."""

    start: str
    stop: str
    places: str


_SERVE = _SCRIPT.format(command="gunicorn -w 2 -b 0.0.0.0:8086 app:application", port=8086)
GUNICORN = Program(
    f"""
        install -d /srv/app
        printf %s '{gunicorn.APP}' >/srv/app/app.py
        echo PYTHONDONTWRITEBYTECODE=1 >/etc/default/app
        printf %s '{_SERVE}' >/etc/init.d/app
        chmod +x /etc/init.d/app
        service app start
    """,
    "service app stop; rm -f /etc/init.d/app /etc/default/app",
    "/etc/default",
)
MARIADB = Program(
    f"""
        {php_fpm.CASE.start}
        printf %s '{_PAGE}' >/srv/php/index.php
        {mariadb.CASE.start}
        mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e "{_USER}"
    """,
    f"{php_fpm.CASE.stop}\n{mariadb.CASE.stop}",
    "/etc/php /etc/mysql",
)
