"""Every host serves what it is there for, and what a profile changes on it can be changed over ssh, for real."""

import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lab import origin1, state, web1
from tests.lab.app1 import OPTIONS, REQUESTS, STATUS_LOGIN, STATUS_PATH
from tests.lab.inside import made_up
from tests.lab.lab import Host, Lab
from tests.lab.proxy1 import CONFIG, STORE_MOUNT
from tests.lab.services import SMALL

Reply = tuple[int, http.client.HTTPMessage, bytes]
SHOP = "/shop/quote"


def ask(host: Host, path: str, body: bytes | None = None, port: int = 80) -> Reply:
    connection = http.client.HTTPConnection(host.address, port, timeout=30)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def on_the_host(host: Host, url: str, *options: str) -> str:
    """What curl gets from the host's own address, its errors raised."""
    return host.ssh(f"curl -sS --fail {' '.join(options)} '{url}'").stdout


def restart_apache(host: Host, *switches: str) -> None:
    """Over ssh: what is to be switched, a full stop (an MPM is not changed by less) and a start."""
    stop = "apachectl stop && while pgrep -x apache2 >/dev/null; do sleep 0.02; done"
    host.ssh(" && ".join([*switches, stop, "apachectl start"]))


def manager(proxy1: Host, page: str) -> str:
    """A page of squid's cache manager, asked for on its host; "" where there is none (yet)."""
    return proxy1.ssh(f"curl -sS --fail http://localhost:3128/squid-internal-mgr/{page}", check=False).stdout


def from_cache(host: Host, path: str) -> bool:
    """Whether a reply came from the host's cache; it is whole and good in any case."""
    status, headers, body = ask(host, path)
    assert (status, len(body)) == (200, 6_224_340 if "large" in path else 3072)
    return headers["X-Cache"].startswith("HIT")


def soon_from_cache(host: Host, path: str) -> bool:
    """The same within some seconds: a store may take a moment to have what it was given."""
    return state.wait_for(lambda: from_cache(host, path))


# What the shop's tables hold, worked out once more.
def customer(number: int) -> tuple[str, int]:
    return f"Customer {number}", number % 5 * 2


def article(number: int) -> tuple[str, int]:
    return f"Article {number}", 250 + 37 * number


def sales(number: int) -> tuple[int, int]:
    mine = [sale for sale in range(5000) if sale % 200 + 1 == number]
    return len(mine), sum((sale % 9 + 1) * article(sale * 7 // 3 % 100 + 1)[1] for sale in mine)


def expected_quote(request: Path) -> tuple[object, ...]:
    asked = {part.tag: int(part.text or "") for part in ElementTree.parse(request).iter() if (part.text or "").strip()}
    name, discount = customer(asked["{urn:shop}customer"])
    title, cents = article(asked["{urn:shop}article"])
    total = cents * asked["{urn:shop}quantity"] * (100 - discount) // 100
    return name, title, *sales(asked["{urn:shop}customer"]), total


def quote(reply: Reply) -> tuple[object, ...]:
    status, headers, body = reply
    assert (status, headers["Content-Type"]) == (200, "text/xml;charset=UTF-8"), body
    found = ElementTree.fromstring(body).find(".//{urn:shop}quote")
    assert found is not None
    name, title, sold, cents = found
    return name.text, title.text, int(sold.attrib["count"]), int(sold.attrib["cents"]), int(cents.text or "")


def test_every_host_serves_hello(whole_lab: Lab) -> None:
    for name, port in (("web1", 80), ("app1", 8080), ("app1", 80), ("origin1", 80), ("proxy1", 80)):
        status, _, body = ask(whole_lab.hosts[name], "/hello.html", port=port)
        assert (status, len(body)) == (200, 92), name
    assert [len(ask(whole_lab.web1, path)[2]) for path in ("/tiny.txt", "/small.txt")] == [31, 44]


def test_every_host_is_reached_by_ssh_and_is_alone(whole_lab: Lab) -> None:
    seen = {
        name: {words for words in host.ssh("hostname; ps -e -o comm=").stdout.split() if words in {name, "java"}}
        for name, host in whole_lab.hosts.items()
    }
    assert seen == {"web1": {"web1"}, "app1": {"app1", "java"}, "proxy1": {"proxy1"}, "origin1": {"origin1"}}


def test_the_origin_has_its_images(whole_lab: Lab) -> None:
    origin = whole_lab.origin1
    count = "find /var/www/html/img -name '[0-9]*.jpg' -size -4k | wc -l"
    assert int(origin.run(count).stdout) == 15_000
    for path, size in (("img/00001.jpg", 3072), ("img/15000.jpg", 3072), ("img/large.jpg", 6_224_340)):
        status, headers, body = ask(origin, f"/{path}")
        assert (status, len(body), headers["Content-Length"]) == (200, size, str(size))
        assert body == made_up(f"{origin1.DOCUMENTS}/{path}", size)


@pytest.mark.parametrize("request_file", REQUESTS, ids=[path.stem for path in REQUESTS])
def test_the_shop_answers_from_three_queries(whole_lab: Lab, request_file: Path) -> None:
    """By Tomcat alone, and through an Apache on the same host."""
    body = request_file.read_bytes()
    expected = expected_quote(request_file)
    assert quote(ask(whole_lab.app1, SHOP, body, 8080)) == expected
    assert quote(ask(whole_lab.app1, SHOP, body)) == expected


@pytest.mark.parametrize(
    ("old", "new", "code", "reason"),
    [
        ("<customer>17<", "<customer>201<", "soap:Client", "there is no customer 201"),
        ("<customer>17</customer>", "", "soap:Client", "a request has one <customer>, not 0"),
        ("</soap:Envelope>", "", "soap:Client", None),
    ],
)
def test_the_shop_says_what_is_wrong(whole_lab: Lab, old: str, new: str, code: str, reason: str | None) -> None:
    body = REQUESTS[0].read_text().replace(old, new)
    status, _, reply = ask(whole_lab.app1, SHOP, body.encode(), 8080)
    root = ElementTree.fromstring(reply)
    assert (status, root.findtext(".//faultcode")) == (500, code)
    assert reason is None or root.findtext(".//faultstring") == reason


def test_web1_hands_the_shop_on_to_app1(whole_lab: Lab, plain_web1: Host) -> None:
    """By HTTP, or by AJP with mod_jk, which keeps its connections."""
    body = REQUESTS[0].read_bytes()
    for command, by_ajp in (("true", False), ("a2enmod -q jk", True), ("a2dismod -q jk", False)):
        restart_apache(plain_web1, command)
        assert quote(ask(plain_web1, SHOP, body)) == expected_quote(REQUESTS[0])
        assert bool(plain_web1.run("ss -Htn state established dport = :8009").stdout) == by_ajp


def test_tomcat_starts_with_the_options_of_its_file(whole_lab: Lab) -> None:
    app1 = whole_lab.app1
    before = app1.ssh("pgrep -x java").stdout
    kept = app1.run(f"cat {OPTIONS}").stdout
    app1.ssh(f"sed -i 's/-Xmx128m/-Xmx160m/; s/-Xms128m/-Xms160m/' {OPTIONS}")
    app1.ssh("service tomcat10 restart")
    assert app1.ssh("pgrep -x java").stdout != before
    assert "-Xmx160m" in app1.ssh("ps -C java -ww -o args=").stdout
    assert quote(ask(app1, SHOP, REQUESTS[1].read_bytes(), 8080)) == expected_quote(REQUESTS[1])
    app1.restart("tomcat10")
    assert app1.run(f"cat {OPTIONS}").stdout == kept
    assert "-Xmx128m" in app1.ssh("ps -C java -ww -o args=").stdout


def test_status_pages_answer_the_host_alone(whole_lab: Lab) -> None:
    web1_page = on_the_host(whole_lab.web1, "http://localhost/server-status?auto")
    assert {"ServerMPM: prefork", "BusyWorkers: 1"} <= set(web1_page.splitlines())
    login = ":".join(STATUS_LOGIN)
    tomcat = on_the_host(whole_lab.app1, f"http://localhost:8080{STATUS_PATH}?XML=true", f"-u {login}")
    assert ElementTree.fromstring(re.sub(r"<\?.*?\?>", "", tomcat)).find("jvm/memory") is not None
    assert re.search(r"^client_http.requests = \d+$", manager(whole_lab.proxy1, "counters"), re.MULTILINE)
    for name, path, port in (
        ("web1", "/server-status?auto", 80),
        ("app1", f"{STATUS_PATH}?XML=true", 8080),
        ("proxy1", "/squid-internal-mgr/counters", 80),
    ):
        assert ask(whole_lab.hosts[name], path, port=port)[0] == 403, name


def test_php_page_of_varying_length(plain_web1: Host) -> None:
    restart_apache(plain_web1, "a2enmod -q php")
    lengths = {len(ask(plain_web1, "/page.php")[2]) for _ in range(12)}
    assert len(lengths) > 1
    assert 40_000 < min(lengths) <= max(lengths) < 44_000


def test_the_mpm_is_switched_over_ssh(plain_web1: Host) -> None:
    machine = sorted(path.name for path in Path("/etc/apache2/mods-enabled").glob("*"))
    for mpm in ("worker", "event", "prefork"):
        restart_apache(plain_web1, "a2dismod -q mpm_$(a2query -M)", f"a2enmod -q mpm_{mpm}")
        assert f"ServerMPM: {mpm}\n" in on_the_host(plain_web1, "http://localhost/server-status?auto")
    assert sorted(path.name for path in Path("/etc/apache2/mods-enabled").glob("*")) == machine


def test_no_cache_disk_cache_memory_cache(whole_lab: Lab, plain_web1: Host) -> None:
    """In front of origin1, for a small image and the large one; the caches' own log says the same."""
    paths = ("/img/00002.jpg", "/img/large.jpg")
    restart_apache(plain_web1, "a2enmod -q proxy_http")
    for path in paths:
        assert ask(plain_web1, path)[2] == ask(whole_lab.origin1, path)[2]
        assert ask(plain_web1, path)[1]["X-Cache"] is None
    plain_web1.ssh("service memcached start")
    for on, off in (("cache_disk", "cache_socache"), ("cache_socache", "cache_disk")):
        # What another test may have left there goes first.
        empty = f"rm -rf {web1.CACHE_MOUNT}/*; true >{web1.CACHE_LOG}"
        restart_apache(plain_web1, f"a2dismod -q -f {off}", f"a2enmod -q {on}", empty)
        for path in paths:
            assert not from_cache(plain_web1, path)
            assert soon_from_cache(plain_web1, path)
            assert ask(plain_web1, path)[2] == ask(whole_lab.origin1, path)[2]
        log = plain_web1.run(f"cat {web1.CACHE_LOG}").stdout
        assert all(f"cache hit {path}\n" in log for path in paths)
        stored = plain_web1.run(f"find {web1.CACHE_MOUNT} -name '*.data' | wc -l; rm -rf {web1.CACHE_MOUNT}/*").stdout
        assert int(stored) == (2 if on == "cache_disk" else 0)


@pytest.fixture
def plain_proxy1(whole_lab: Lab) -> Iterator[Host]:
    """proxy1, whose squid has its own store, and nothing in it, before the test and after it."""
    whole_lab.proxy1.restart("squid")
    yield whole_lab.proxy1
    whole_lab.proxy1.restart("squid")


def keeps_images(proxy1: Host, origin: Host, kind: str) -> None:
    """A miss, then hits: in squid's headers and its log; the same bytes as the origin's."""
    # A rock store has a process of its own, which may come up after the port is open.
    assert state.wait_for(lambda: f"({kind}): {STORE_MOUNT}" in manager(proxy1, "storedir"))
    path = "/img/00011.jpg"
    assert not from_cache(proxy1, path)
    assert soon_from_cache(proxy1, path)
    assert ask(proxy1, path)[2] == ask(origin, path)[2]
    log = proxy1.run("cat /var/log/squid/access.log").stdout
    assert re.search(rf"TCP_\w*HIT/200 \d+ GET http://origin1{path}", log)


def test_squid_keeps_images_and_its_store_is_changed(whole_lab: Lab, plain_proxy1: Host) -> None:
    keeps_images(plain_proxy1, whole_lab.origin1, "ufs")
    plain_proxy1.ssh("squid -k shutdown && while pgrep -x squid >/dev/null; do sleep 0.02; done")
    store = f"cache_dir rock {STORE_MOUNT} 300"
    plain_proxy1.ssh(f"rm -rf {STORE_MOUNT}/* /var/log/squid/access.log && sed -i 's,^cache_dir .*,{store},' {CONFIG}")
    plain_proxy1.ssh("squid -z --foreground && squid")
    keeps_images(plain_proxy1, whole_lab.origin1, "rock")


def test_atime_options_change_what_a_read_leaves_behind(lab: Lab) -> None:
    """noatime: nothing; strictatime: every read; relatime: the first read after a write, and no more."""
    host = lab.web1
    mount, file = web1.ATIME_MOUNT, web1.ATIME_FILE
    look = f"LC_ALL=C ls -lu --time-style=full-iso {file}"
    assert f" {mount} ext4 rw,relatime" in host.run("cat /proc/mounts").stdout
    moved = {}
    for option in ("noatime", "strictatime", "relatime"):
        host.ssh(f"mount -o remount,{option} {mount} && touch -d '2 days ago' {file}")
        times = [host.ssh(look).stdout]
        for _ in range(2):
            assert ask(host, "/atime/small.txt")[2].decode() == SMALL
            times.append(host.ssh(look).stdout)
        moved[option] = (times[0] != times[1], times[1] != times[2])
    assert moved == {"noatime": (False, False), "strictatime": (True, True), "relatime": (True, False)}
