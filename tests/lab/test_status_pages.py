"""Status pages in the configurations of real servers: used in a draft if they can be read, else named in a comment."""

from __future__ import annotations

from cockpit.model.host.samples import HostConfig
from cockpit.profiles.writing import profile_text
from cockpit.setup.profile_draft import draft_of, survey
from tests.lab.masters import running_server
from tests.waiting import free_port

POOL = "listen = 127.0.0.1:{fpm}\npm.status_path = /$pool-status\n"
# Below the page that is read: pages that refuse all, of another name, on a socket, and of several paths.
NGINX = """\
server {{
    listen 127.0.0.1:{port};
    location = /nginx_status {{ stub_status; }}
    location /refused {{ stub_status; deny all; }}
    {passing}
    location / {{ return 204; }}
}}
server {{ listen 127.0.0.1:{port}; server_name other.example; location /named {{ stub_status; }} }}
server {{ listen unix:/run/cockpit-test-{port}.sock; location /socket {{ stub_status; }} }}
server {{ listen 127.0.0.1:{port}; server_name x.example; location ~ ^/s {{ stub_status; }} }}
"""
PASSING = """location /www-status {{
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $fastcgi_script_name;
        fastcgi_pass 127.0.0.1:{fpm};
    }}"""
APACHE = """\
LoadModule status_module /usr/lib/apache2/modules/mod_status.so
LoadModule authz_host_module /usr/lib/apache2/modules/mod_authz_host.so
<Location "/server-status">
    SetHandler server-status
    Require local
</Location>
<Location /denied>
    SetHandler server-status
    Require all denied
</Location>
"""


async def drafted(port: int) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the kinds and URLs of the pages of a drafted profile, and its comments about other pages."""
    url, here = f"http://127.0.0.1:{port}/", HostConfig(name="here")
    draft = draft_of(url, [await survey(here, url)])
    (host,) = draft.hosts
    text = profile_text(draft)
    notes = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# status page of ")]
    return [(page.kind, page.url) for page in host.status], notes


async def test_pages_of_nginx_and_of_a_pool_behind_it() -> None:
    port, fpm = free_port(), free_port()
    with running_server("php", more=POOL.format(fpm=fpm)) as php:
        with running_server("nginx", more=NGINX.format(port=port, passing=PASSING.format(fpm=fpm))) as nginx:
            pages, notes = await drafted(port)
            assert pages == [
                ("nginx", f"http://127.0.0.1:{port}/nginx_status"),
                ("php-fpm", f"http://localhost:{port}/www-status?json"),
            ]
            place, url = f"status page of nginx in {nginx.root}/conf.d/more.conf", f"http://127.0.0.1:{port}"
            assert notes == [
                f"{place}:4 is not used: {url}/refused: 403: does the location allow this host? allow 127.0.0.1",
                f"{place}:12 is not used: {url}/named: 204 instead of the page; "
                "its site has the name other.example, not 127.0.0.1",
                f"{place}:13 is not used: it cannot be requested on this host at unix:/run/cockpit-test-{port}.sock",
                f"{place}:14 is not used: its location is a regular expression",
            ]
        # Only FastCGI, without a web server that passes the path.
        pages, (note,) = await drafted(fpm)
    assert not pages and note == (
        f"status page of PHP-FPM (php-fpm8.2) in {php.file}:10 is not used: pool www serves it by FastCGI, cockpit "
        f"reads it through a web server; no web server on this host passes requests to 127.0.0.1:{fpm}"
    )


async def test_pages_of_apache() -> None:
    with running_server("apache", more=APACHE) as apache:
        pages, (note,) = await drafted(apache.port)
        url = f"http://localhost:{apache.port}"
        assert pages == [("apache", f"{url}/server-status?auto")]
        assert note.startswith(
            f"status page of Apache (apache2) in {apache.root}/conf.d/more.conf:8 is not used: {url}/denied?auto: 403"
        )
