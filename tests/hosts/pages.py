"""Status pages of real servers, shortened: one file each in `status_pages/`."""

from pathlib import Path


def _page(name: str) -> str:
    return (Path(__file__).parent / "status_pages" / f"{name}.txt").read_text()


APACHE = _page("apache")
NGINX = _page("nginx")
SQUID_COUNTERS = _page("squid_counters")
SQUID_INFO = _page("squid_info")
TOMCAT = _page("tomcat")
LIGHTTPD = _page("lighttpd")
HAPROXY = _page("haproxy")
PHP_FPM = _page("php_fpm")
MARIADB = _page("mariadb")
VARNISH = _page("varnish")
CADDY = _page("caddy")
