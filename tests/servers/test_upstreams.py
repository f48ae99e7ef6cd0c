"""Upstream addresses of proxies, and the servers that listen on them."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.inventory import parse_inventory
from cockpit.servers.upstreams import Upstream, hops, upstreams

NGINX = """
http { upstream app { server 127.0.0.1:9000 weight=2; server unix:/var/run/a.sock; }
upstream Two {
    server 10.0.0.5;
}
server {
    listen 80; server_name x.y;
    location / { proxy_pass http://app; }
    location /x { proxy_pass http://127.0.0.1:8080/x; }
    location ~ php { fastcgi_pass unix:/run/php/php8.2-fpm.sock; }
    location /v { proxy_pass http://$host; }
    location /w { proxy_pass http://unix:/run/$name.sock; }
    location /s { proxy_pass http://unix:/run/s.sock:/uri/; }
    location /t { proxy_pass https://[::1]; }
    location /u { proxy_pass http://Two; }
}}
"""
APACHE = r"""
ProxyPass /shop http://127.0.0.1:8080/shop
ProxyPass "/a b" "ajp://localhost"
<Proxy balancer://c>
    BalancerMember http://10.0.0.2:8080 route=1
</Proxy>
ProxyPass / balancer://c/
ProxyPass /no !
ProxyPassMatch ^/(.*\.php)$ fcgi://127.0.0.1:9000/var/www/$1
SetHandler "proxy:unix:/run/php/php8.2-fpm.sock|fcgi://localhost/"
<Location /q>
    ProxyPass "http://127.0.0.1:81/"
worker.list=app1
worker.app1.type=ajp13
worker.app1.host=app1
worker.app1.port=8009
"""
HAPROXY = """
backend x
    default-server inter 1s
    server a 127.0.0.1:8080 check
    server b /run/x.sock
    server c unix@/run/y.sock send-proxy
"""
LIGHTTPD = """
proxy.server = ( "" => ( ( "host" => "127.0.0.1", "port" => 8080 ) ) )
fastcgi.server = ( ".php" => (( "bin-path" => "/usr/bin/php-cgi", "socket" => "/run/php.socket" )))
"""
CADDY = """
:80 {
    reverse_proxy /api/* localhost:9000 localhost:9001
    reverse_proxy h2c://10.0.0.9
    php_fastcgi unix//run/php/php8.2-fpm.sock
    reverse_proxy @app {
        to app1:8080
    }
    reverse_proxy {env.UPSTREAM}
}
"""
SQUID = "cache_peer app1 parent 8080 0 no-query originserver"


@pytest.mark.parametrize(
    ("kind", "text", "addresses"),
    [
        (
            "nginx",
            NGINX,
            "127.0.0.1:9000 /run/a.sock 10.0.0.5:80 127.0.0.1:8080 /run/php/php8.2-fpm.sock /run/s.sock ::1:443",
        ),
        (
            "apache",
            APACHE,
            "127.0.0.1:8080 localhost:8009 10.0.0.2:8080 127.0.0.1:9000 /run/php/php8.2-fpm.sock 127.0.0.1:81 "
            "app1:8009",
        ),
        ("haproxy", HAPROXY, "127.0.0.1:8080 /run/x.sock /run/y.sock"),
        ("lighttpd", LIGHTTPD, "127.0.0.1:8080 /run/php.socket"),
        ("caddy", CADDY, "localhost:9000 localhost:9001 10.0.0.9:80 /run/php/php8.2-fpm.sock app1:8080"),
        ("squid", SQUID, "app1:8080"),
    ],
)
def test_upstream_addresses_are_found(kind: str, text: str, addresses: str) -> None:
    assert [upstream.words for upstream in upstreams(text, registry.UPSTREAMS[kind])] == addresses.split(" ")


def test_processes_on_upstream_addresses_are_found() -> None:
    inventory = parse_inventory(
        "process\t9\t1\thaproxy\thaproxy -f /a\nprocess\t10\t9\thaproxy\thaproxy\n"
        'listen\t0.0.0.0:80\tusers:(("haproxy",pid=10,fd=6))\nlisten\t*:3000\tusers:(("node",pid=12,fd=6))\n'
        'unix\t/run/x.sock\tusers:(("gunicorn",pid=14,fd=6))\nunix\tx\tusers:(("evil",pid=15,fd=1))\naddress\t10.0.0.1\n',
        registry.FILES,
    )
    (server,) = registry.running_servers(inventory)
    addresses = [("10.0.0.1", 80, ""), ("localhost", 3000, ""), ("", 0, "/run/x.sock"), ("127.0.0.2", 4000, "")]
    found = hops(
        "nginx :81", [Upstream(*address) for address in (*addresses, ("10.0.0.2", 80, ""))], inventory, [server]
    )
    assert [(hop.is_here, hop.server, hop.name) for hop in found] == [
        (True, server, "haproxy"),
        (True, None, "node"),
        (True, None, "gunicorn"),
        (True, None, ""),
        (False, None, ""),
    ]
    assert [hop.words for hop in found[:3]] == [
        "nginx :81 -> HAProxy 10.0.0.1:80",
        "nginx :81 -> node localhost:3000",
        "nginx :81 -> gunicorn /run/x.sock",
    ]
