"""Settings within the arguments of directives: flags, several lines that have the same value, and refusals."""

import pytest

from cockpit.servers.editing import ConfigError, ConfigValue
from cockpit.servers.haproxy.editor import HaproxyGrammar
from cockpit.servers.nginx.editor import NginxGrammar

NGINX, HAPROXY = NginxGrammar(), HaproxyGrammar()
SERVER = "http { server {"
OFF = b"http { server {\n  listen 80;\n  listen 443 ssl default_server;\n  listen [::]:443 # v6\n ssl ;\n} }\n"
ON = OFF.replace(b"default_server;", b"default_server http2;").replace(b"\n ssl ;", b"\n ssl http2 ;")


def test_flag_is_switched_on_every_line() -> None:
    assert NGINX.read(OFF, "listen http2", SERVER) == ConfigValue("off", b"", 0, 1)
    assert NGINX.read(ON, "listen http2", SERVER) == ConfigValue("on", b"http2", 4, 1)
    on, off = (NGINX.encode_in(OFF, "listen http2", SERVER, value, None) for value in ("on", "off"))
    assert NGINX.change(OFF, "listen http2", on, SERVER) == NGINX.change(ON, "listen http2", on, SERVER) == ON
    assert NGINX.change(ON, "listen http2", off, SERVER) == NGINX.change(OFF, "listen http2", off, SERVER) == OFF
    assert NGINX.change(ON, "listen http2", None, SERVER) == OFF
    with pytest.raises(ConfigError, match="must be on or off"):
        NGINX.encode_in(OFF, "listen http2", SERVER, "yes", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ON.replace(b"default_server http2", b"default_server"), "listen http2 differs between 2 lines"),
        (OFF.replace(b"ssl", b"quic"), "no line listen with ssl"),
        (ON.replace(b"80;", b"81 ssl http2 http2;"), "line 2: http2 is set 2 times"),
    ],
)
def test_ambiguous_flag_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        NGINX.read(text, "listen http2", SERVER)


def test_value_on_several_lines() -> None:
    text = b"frontend web\n  bind :443 ssl alpn h2\n  bind [::]:443 v6only ssl alpn h2 crt x\n"
    new = HAPROXY.encode_in(text, "bind alpn", None, "h2,http/1.1", b"h2")
    changed = HAPROXY.change(text, "bind alpn", new, "frontend web")
    assert changed == text.replace(b"alpn h2", b"alpn h2,http/1.1")
    unset = HAPROXY.change(changed, "bind alpn", None, "frontend web")
    assert unset == text.replace(b" alpn h2", b"")
    assert HAPROXY.read(unset, "bind alpn", "frontend web").value is None
    with pytest.raises(ConfigError, match="one word"):
        HAPROXY.encode_in(text, "bind alpn", None, "h2 http/1.1", b"h2")
    with pytest.raises(ConfigError, match="no value"):
        HAPROXY.change(b"frontend web\n  bind :443 ssl alpn\n", "bind alpn", b"h2", "frontend web")
