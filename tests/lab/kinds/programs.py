"""Programs of web1 for shipped profiles of applications: a service `app`, whose variables are in /etc/default/app."""

from __future__ import annotations

from typing import NamedTuple

from tests.lab.kinds import gunicorn, mariadb, php_fpm

# `service` runs it on a host without systemd. uvicorn with several workers does not end by SIGTERM alone.
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
_UVICORN = """\
import time


async def app(scope, receive, send):
    time.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
"""
_NODE = """\
const dns = require("dns"), http = require("http");
http.createServer((_, answer) => dns.lookup("slow.example", 4, () => answer.end("hello"))).listen(8011);
"""
# A name server that knows no name, after 50 ms.
_NAMES = """\
import asyncio


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, asked, client):
        answer = asked[:2] + bytes([0x81, 0x83]) + asked[4:6] + bytes(6) + asked[12:]
        asyncio.get_running_loop().call_later(0.05, self.transport.sendto, answer, client)


async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("127.0.0.1", 53))
    await asyncio.Event().wait()


asyncio.run(main())
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


def _app(name: str, text: str, command: str, port: int, variables: str = "") -> Program:
    start = f"""
        install -d /srv/app
        printf %s '{text}' >/srv/app/{name}
        printf '{variables}' >/etc/default/app
        printf %s '{_SCRIPT.format(command=command, port=port)}' >/etc/init.d/app
        chmod +x /etc/init.d/app
        service app start
    """
    return Program(start, "service app stop; rm -f /etc/init.d/app /etc/default/app", "/etc/default")


UVICORN = _app(
    "app.py",
    _UVICORN,
    "uvicorn app:app --host 0.0.0.0 --port 8010 --lifespan off --log-level warning",
    8010,
    "PYTHONDONTWRITEBYTECODE=1\\n",
)
_PLAIN_NODE = _app("app.js", _NODE, "node app.js", 8011, "# Threads of libuv\\n")
NODE = Program(
    f"""
        printf %s '{_NAMES}' >/srv/names.py
        setsid python3 /srv/names.py </dev/null >/var/log/names.log 2>&1 & echo $! >/run/names.pid
        cp /etc/resolv.conf /run/resolv.conf
        echo nameserver 127.0.0.1 >/etc/resolv.conf
        {_PLAIN_NODE.start}
    """,
    f"{_PLAIN_NODE.stop}; cp /run/resolv.conf /etc/resolv.conf; kill $(cat /run/names.pid)",
    _PLAIN_NODE.places,
)
GUNICORN = _app(
    "app.py", gunicorn.APP, "gunicorn -w 2 -b 0.0.0.0:8086 app:application", 8086, "PYTHONDONTWRITEBYTECODE=1\\n"
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
