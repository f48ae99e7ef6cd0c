"""PHP-FPM: masters by their titles, pools and php.ini, status page."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.kind import RunningServer
from cockpit.servers.status import NotThePageError
from tests.servers.found import running

BUILT = """\
built\t/usr/sbin/php-fpm8.2\tConfiguration File (php.ini) Path => /etc/php/8.2/fpm
built\t/usr/sbin/php-fpm8.2\tLoaded Configuration File => /etc/php/8.2/fpm/php.ini
built\t/usr/sbin/php-fpm8.2\tAdditional .ini files parsed => /etc/php/8.2/fpm/conf.d/10-opcache.ini,
built\t/usr/sbin/php-fpm8.2\t/etc/php/8.2/fpm/conf.d/20-ctype.ini
"""
TEXTS = """\
text\t/etc/php/8.2/fpm/php-fpm.conf\t[global]
text\t/etc/php/8.2/fpm/php-fpm.conf\terror_log = /var/log/php8.2-fpm.log
text\t/etc/php/8.2/fpm/pool.d/www.conf\t[www]
text\t/etc/php/8.2/fpm/pool.d/www.conf\tslowlog = /var/log/slow log
text\t/etc/php/8.2/fpm/pool.d/www.conf\t;[old]
"""


def master(pid: int, file: str, unit: str = "") -> str:
    return (
        f"process\t{pid}\t1\tphp-fpm8.2\tphp-fpm: master process ({file})\t\n"
        f"master\t{pid}\t/usr/sbin/php-fpm8.2\t/\tyes\t{unit}\thost\n"
    )


def discover(text: str) -> list[RunningServer]:
    servers = running(f"user\troot\n{text}")
    return [server for server in servers if server.title.startswith("PHP-FPM")]


def test_packaged_master_has_pool_php_ini_and_logs() -> None:
    (server,) = discover(master(9, "/etc/php/8.2/fpm/php-fpm.conf") + BUILT + TEXTS)
    startup = server.startup
    assert startup is not None and startup.files[1:3] == (
        "/etc/php/8.2/fpm/php.ini",
        "/etc/php/8.2/fpm/conf.d/10-opcache.ini",
    )
    assert startup.test == "/usr/sbin/php-fpm8.2 -t -y /etc/php/8.2/fpm/php-fpm.conf"
    assert startup.reload == "service php8.2-fpm reload"
    knobs = {candidate.name: candidate for candidate in server.candidates}
    assert knobs["pm.max_children"].section == "www" and knobs["pm.max_children"].log == "/var/log/php8.2-fpm.log"
    assert knobs["opcache.enable"].file == "/etc/php/8.2/fpm/php.ini"
    assert server.tail == ("tail -n 3 -F /var/log/php8.2-fpm.log", "tail -n 3 -F /var/log/slow")


def test_each_master_has_its_own_pools_and_commands() -> None:
    second = master(20, "/srv/api/fpm.conf") + "process\t21\t20\tphp-fpm8.2\tphp-fpm: pool api\t\n"
    first, other = discover(master(9, "/etc/php/8.2/fpm/php-fpm.conf", "php8.2-fpm.service") + second + BUILT + TEXTS)
    assert first.startup is not None and first.startup.reload == "systemctl reload php8.2-fpm.service"
    assert {candidate.name for candidate in first.candidates if candidate.directive == "pm"} == {"pm-www"}
    assert {candidate.name for candidate in other.candidates} >= {"pm-api", "pm.max_children-api"}
    assert not any(candidate.directive.startswith("opcache") for candidate in other.candidates), (
        "its php.ini is unknown"
    )
    assert other.startup.reload == r"pkill -USR2 -o -x -f -- 'php-fpm: master process \(/srv/api/fpm\.conf\)'"


def test_master_without_known_file_offers_nothing() -> None:
    (server,) = discover("process\t9\t1\tphp-fpm8.2\tphp-fpm: something else\t\n")
    assert server.candidates == () and server.startup is not None and server.startup.file == ""


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("include=/etc/php/8.2/fpm/pool.d/*.conf", "/etc/php/8.2/fpm/pool.d/*.conf"),
        (" include = /srv/a b/*.conf ; the pools\r", "/srv/a b/*.conf"),
        ('include = "/srv/a;b/*.conf";', '"/srv/a;b/*.conf"'),
    ],
)
def test_a_comment_is_no_part_of_an_included_path(line: str, path: str) -> None:
    assert registry.INCLUDES["php-fpm"].findall(line) == [path]


PAGE = (
    '{"pool":"www","process manager":"dynamic","start time":1700000000,"start since":60,"accepted conn":12,'
    '"listen queue":3,"max listen queue":4,"listen queue len":511,"idle processes":1,"active processes":4,'
    '"total processes":5,"max active processes":5,"max children reached":2,"slow requests":1,"processes":[{"pid":1}]}'
)


def test_status_page_is_parsed() -> None:
    page = registry.STATUS_PAGES["php-fpm"]
    values, text = page.parse(PAGE)
    assert (values["active processes"], values["listen queue"], values["max children reached"]) == (4, 3, 2)
    assert text == {"pool": "www", "process manager": "dynamic"} and "processes" not in values
    assert page.is_counter("slow requests") and not page.is_counter("listen queue")


@pytest.mark.parametrize("text", ["[]", "{}", '{"active processes":"4"}', '{"active processes":1e400}', "[" * 9999])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(NotThePageError, match=r"the URL must end in pm\.status_path and \?json"):
        registry.STATUS_PAGES["php-fpm"].parse(text)
