"""A PHP page with sessions and a token per form, in PHP-FPM behind an nginx of its own, on web1."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.lab.lab import Host

PORT = 8068
_FOLDER = "/srv/sessions"
_PAGE = """\
<?php
session_save_path("/srv/sessions/data");
session_start();
header("X-Session: " . session_id());
$path = parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH);
if ($path === "/form") {
    $_SESSION["token"] = bin2hex(random_bytes(16));
    echo "<form method=post><input type=hidden name=\\"csrf\\" value=\\"{$_SESSION["token"]}\\"></form>";
} elseif ($path === "/order") {
    if (!isset($_SESSION["token"]) || ($_POST["csrf"] ?? "") !== $_SESSION["token"]) {
        http_response_code(403);
        exit;
    }
    $id = bin2hex(random_bytes(8));
    $_SESSION = ["order" => $id];
    http_response_code(201);
    header("X-Order: $id");
    echo json_encode(["order" => ["id" => $id]]);
} elseif ($path === "/orders/" . ($_SESSION["order"] ?? "")) {
    echo "shown";
} elseif ($path === "/") {
    echo $_SESSION["visits"] = ($_SESSION["visits"] ?? 0) + 1;
} else {
    http_response_code(404);
}
"""
_POOL = """\
[global]
pid = /srv/sessions/fpm.pid
error_log = /srv/sessions/fpm.log
[www]
user = www-data
group = www-data
listen = /srv/sessions/fpm.sock
listen.owner = www-data
pm = static
pm.max_children = 4
"""
_NGINX = f"""\
user www-data;
worker_processes 1;
pid {_FOLDER}/nginx.pid;
error_log {_FOLDER}/error.log;
events {{ worker_connections 256; }}
http {{
    log_format session "$msec $connection $connection_requests $upstream_http_x_session $cookie_PHPSESSID "
                       "$request_method $uri $status $upstream_http_x_order";
    access_log {_FOLDER}/access.log session;
    keepalive_timeout 600s;
    server {{
        listen {PORT};
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME {_FOLDER}/index.php;
            fastcgi_pass unix:{_FOLDER}/fpm.sock;
        }}
    }}
}}
"""
START = f"""
    install -d {_FOLDER} && install -d -o www-data {_FOLDER}/data
    printf %s '{_PAGE}' >{_FOLDER}/index.php
    printf %s '{_POOL}' >{_FOLDER}/fpm.conf
    printf %s '{_NGINX}' >{_FOLDER}/nginx.conf
    $(ls /usr/sbin/php-fpm?.? | head -n 1) -D -y {_FOLDER}/fpm.conf && nginx -c {_FOLDER}/nginx.conf
"""
STOP = f"""
    for file in nginx fpm; do
        pid=$(cat {_FOLDER}/$file.pid); kill $pid; while kill -0 $pid; do sleep 0.02; done
    done
    rm -r {_FOLDER}
"""


class Visit(NamedTuple):
    """A line of nginx's log: `session` is that of the page, `cookie` the one that the client sent ("-": none). `nth` is
    the number of the request on its `connection`; `order` was created by it ("-": none)."""

    at: float
    connection: int
    nth: int
    session: str
    cookie: str
    method: str
    path: str
    status: int
    order: str


def visits(host: Host) -> list[Visit]:
    """All requests so far, in the order of their responses."""
    lines = Path(f"/proc/{host.pid}/root{_FOLDER}/access.log").read_text().split("\n")[:-1]
    found = []
    for line in lines:
        at, connection, nth, session, cookie, method, path, status, order = line.split(" ")
        found.append(Visit(float(at), int(connection), int(nth), session, cookie, method, path, int(status), order))
    return found
