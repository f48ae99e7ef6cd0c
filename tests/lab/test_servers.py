"""Servers of all hosts: their pages and status, and the changes of shipped profiles over ssh."""

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

Response = tuple[int, http.client.HTTPMessage, bytes]
SHOP = "/shop/quote"


def request(host: Host, path: str, body: bytes | None = None, port: int = 80) -> Response:
    connection = http.client.HTTPConnection(host.address, port, timeout=30)
    try:
        connection.request("GET" if body is None else "POST", path, body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def curl_on_host(host: Host, url: str, *options: str) -> str:
    """Return curl's output for a URL, run on the host; raises errors."""
    return host.ssh(f"curl -sS --fail {' '.join(options)} '{url}'").stdout


def restart_apache(host: Host, *switches: str) -> None:
    """Run the switches over ssh, with a full stop and start of Apache, which a change of the MPM needs."""
    stop = "apachectl stop && while pgrep -x apache2 >/dev/null; do sleep 0.02; done"
    host.ssh(" && ".join([*switches, stop, "apachectl start"]))


def manager(proxy1: Host, page: str) -> str:
    """Return a page of squid's cache manager, requested on its host; "" if there is none (yet)."""
    return proxy1.ssh(f"curl -sS --fail http://localhost:3128/squid-internal-mgr/{page}", check=False).stdout


def from_cache(host: Host, path: str) -> bool:
    """Check a response, and return whether it is from the host's cache."""
    status, headers, body = request(host, path)
    assert (status, len(body)) == (200, 6_224_340 if "large" in path else 3072)
    return headers["X-Cache"].startswith("HIT")


def wait_for_hit(host: Host, path: str) -> bool:
    """Wait for a response from the cache: a store may write with a delay."""
    return state.wait_for(lambda: from_cache(host, path))


# The content of the shop's tables, computed independently.
def customer(number: int) -> tuple[str, int]:
    return f"Customer {number}", number % 5 * 2


def article(number: int) -> tuple[str, int]:
    return f"Article {number}", 250 + 37 * number


def sales(number: int) -> tuple[int, int]:
    own = [sale for sale in range(5000) if sale % 200 + 1 == number]
    return len(own), sum((sale % 9 + 1) * article(sale * 7 // 3 % 100 + 1)[1] for sale in own)


def expected_quote(file: Path) -> tuple[object, ...]:
    fields = {part.tag: int(part.text or "") for part in ElementTree.parse(file).iter() if (part.text or "").strip()}
    name, discount = customer(fields["{urn:shop}customer"])
    title, cents = article(fields["{urn:shop}article"])
    total = cents * fields["{urn:shop}quantity"] * (100 - discount) // 100
    return name, title, *sales(fields["{urn:shop}customer"]), total


def quote(response: Response) -> tuple[object, ...]:
    status, headers, body = response
    assert (status, headers["Content-Type"]) == (200, "text/xml;charset=UTF-8"), body
    found = ElementTree.fromstring(body).find(".//{urn:shop}quote")
    assert found is not None
    name, title, sold, cents = found
    return name.text, title.text, int(sold.attrib["count"]), int(sold.attrib["cents"]), int(cents.text or "")


def test_hosts_serve_hello_page(whole_lab: Lab) -> None:
    for name, port in (("web1", 80), ("app1", 8080), ("app1", 80), ("origin1", 80), ("proxy1", 80)):
        status, _, body = request(whole_lab.hosts[name], "/hello.html", port=port)
        assert (status, len(body)) == (200, 92), name
    assert [len(request(whole_lab.web1, path)[2]) for path in ("/tiny.txt", "/small.txt")] == [31, 44]


def test_hosts_are_reached_by_ssh_and_isolated(whole_lab: Lab) -> None:
    found = {
        name: {word for word in host.ssh("hostname; ps -e -o comm=").stdout.split() if word in {name, "java"}}
        for name, host in whole_lab.hosts.items()
    }
    assert found == {"web1": {"web1"}, "app1": {"app1", "java"}, "proxy1": {"proxy1"}, "origin1": {"origin1"}}


def test_origin_has_its_images(whole_lab: Lab) -> None:
    origin = whole_lab.origin1
    count = "find /var/www/html/img -name '[0-9]*.jpg' -size -4k | wc -l"
    assert int(origin.run(count).stdout) == 15_000
    for path, size in (("img/00001.jpg", 3072), ("img/15000.jpg", 3072), ("img/large.jpg", 6_224_340)):
        status, headers, body = request(origin, f"/{path}")
        assert (status, len(body), headers["Content-Length"]) == (200, size, str(size))
        assert body == made_up(f"{origin1.DOCUMENTS}/{path}", size)


@pytest.mark.parametrize("request_file", REQUESTS, ids=[path.stem for path in REQUESTS])
def test_shop_answers_from_three_queries(whole_lab: Lab, request_file: Path) -> None:
    """Directly from Tomcat, and through Apache on the same host."""
    body = request_file.read_bytes()
    expected = expected_quote(request_file)
    assert quote(request(whole_lab.app1, SHOP, body, 8080)) == expected
    assert quote(request(whole_lab.app1, SHOP, body)) == expected


@pytest.mark.parametrize(
    ("old", "new", "code", "reason"),
    [
        ("<customer>17<", "<customer>201<", "soap:Client", "there is no customer 201"),
        ("<customer>17</customer>", "", "soap:Client", "a request has one <customer>, not 0"),
        ("</soap:Envelope>", "", "soap:Client", None),
    ],
)
def test_shop_reports_soap_faults(whole_lab: Lab, old: str, new: str, code: str, reason: str | None) -> None:
    body = REQUESTS[0].read_text().replace(old, new)
    status, _, response = request(whole_lab.app1, SHOP, body.encode(), 8080)
    root = ElementTree.fromstring(response)
    assert (status, root.findtext(".//faultcode")) == (500, code)
    assert reason is None or root.findtext(".//faultstring") == reason


def test_web1_forwards_shop_requests_to_app1(whole_lab: Lab, plain_web1: Host) -> None:
    """By HTTP, and by AJP with mod_jk, which keeps connections open."""
    body = REQUESTS[0].read_bytes()
    for command, by_ajp in (("true", False), ("a2enmod -q jk", True), ("a2dismod -q jk", False)):
        restart_apache(plain_web1, command)
        assert quote(request(plain_web1, SHOP, body)) == expected_quote(REQUESTS[0])
        assert bool(plain_web1.run("ss -Htn state established dport = :8009").stdout) == by_ajp


def test_tomcat_starts_with_java_options_of_its_file(whole_lab: Lab) -> None:
    app1 = whole_lab.app1
    before = app1.ssh("pgrep -x java").stdout
    original = app1.run(f"cat {OPTIONS}").stdout
    app1.ssh(f"sed -i 's/-Xmx128m/-Xmx160m/; s/-Xms128m/-Xms160m/' {OPTIONS}")
    app1.ssh("service tomcat10 restart")
    assert app1.ssh("pgrep -x java").stdout != before
    assert "-Xmx160m" in app1.ssh("ps -C java -ww -o args=").stdout
    assert quote(request(app1, SHOP, REQUESTS[1].read_bytes(), 8080)) == expected_quote(REQUESTS[1])
    app1.restart("tomcat10")
    assert app1.run(f"cat {OPTIONS}").stdout == original
    assert "-Xmx128m" in app1.ssh("ps -C java -ww -o args=").stdout


def test_status_pages_answer_only_their_host(whole_lab: Lab) -> None:
    web1_page = curl_on_host(whole_lab.web1, "http://localhost/server-status?auto")
    assert {"ServerMPM: prefork", "BusyWorkers: 1"} <= set(web1_page.splitlines())
    login = ":".join(STATUS_LOGIN)
    tomcat = curl_on_host(whole_lab.app1, f"http://localhost:8080{STATUS_PATH}?XML=true", f"-u {login}")
    assert ElementTree.fromstring(re.sub(r"<\?.*?\?>", "", tomcat)).find("jvm/memory") is not None
    assert re.search(r"^client_http.requests = \d+$", manager(whole_lab.proxy1, "counters"), re.MULTILINE)
    for name, path, port in (
        ("web1", "/server-status?auto", 80),
        ("app1", f"{STATUS_PATH}?XML=true", 8080),
        ("proxy1", "/squid-internal-mgr/counters", 80),
    ):
        assert request(whole_lab.hosts[name], path, port=port)[0] == 403, name


def test_php_page_has_varying_length(plain_web1: Host) -> None:
    restart_apache(plain_web1, "a2enmod -q php")
    lengths = {len(request(plain_web1, "/page.php")[2]) for _ in range(12)}
    assert len(lengths) > 1
    assert 40_000 < min(lengths) <= max(lengths) < 44_000


def test_mpm_is_changed_over_ssh(plain_web1: Host) -> None:
    enabled = sorted(path.name for path in Path("/etc/apache2/mods-enabled").glob("*"))
    for mpm in ("worker", "event", "prefork"):
        restart_apache(plain_web1, "a2dismod -q mpm_$(a2query -M)", f"a2enmod -q mpm_{mpm}")
        assert f"ServerMPM: {mpm}\n" in curl_on_host(plain_web1, "http://localhost/server-status?auto")
    assert sorted(path.name for path in Path("/etc/apache2/mods-enabled").glob("*")) == enabled


def test_web1_without_cache_and_with_disk_and_memory_cache(whole_lab: Lab, plain_web1: Host) -> None:
    """For a small and the large image of origin1; the log of the caches must agree."""
    paths = ("/img/00002.jpg", "/img/large.jpg")
    restart_apache(plain_web1, "a2enmod -q proxy_http")
    for path in paths:
        assert request(plain_web1, path)[2] == request(whole_lab.origin1, path)[2]
        assert request(plain_web1, path)[1]["X-Cache"] is None
    plain_web1.ssh("service memcached start")
    for on, off in (("cache_disk", "cache_socache"), ("cache_socache", "cache_disk")):
        # Remove files of other tests first.
        empty = f"rm -rf {web1.CACHE_MOUNT}/*; true >{web1.CACHE_LOG}"
        restart_apache(plain_web1, f"a2dismod -q -f {off}", f"a2enmod -q {on}", empty)
        for path in paths:
            assert not from_cache(plain_web1, path)
            assert wait_for_hit(plain_web1, path)
            assert request(plain_web1, path)[2] == request(whole_lab.origin1, path)[2]
        log = plain_web1.run(f"cat {web1.CACHE_LOG}").stdout
        assert all(f"cache hit {path}\n" in log for path in paths)
        stored = plain_web1.run(f"find {web1.CACHE_MOUNT} -name '*.data' | wc -l; rm -rf {web1.CACHE_MOUNT}/*").stdout
        assert int(stored) == (2 if on == "cache_disk" else 0)


@pytest.fixture
def plain_proxy1(whole_lab: Lab) -> Iterator[Host]:
    """proxy1 with squid's default store, empty before and after the test."""
    whole_lab.proxy1.restart("squid")
    yield whole_lab.proxy1
    whole_lab.proxy1.restart("squid")


def assert_images_are_cached(proxy1: Host, origin: Host, kind: str) -> None:
    """Check for a miss and then hits, in squid's headers and log, with the bytes of the origin."""
    # The process of a rock store may start after the port is open.
    assert state.wait_for(lambda: f"({kind}): {STORE_MOUNT}" in manager(proxy1, "storedir"))
    path = "/img/00011.jpg"
    assert not from_cache(proxy1, path)
    assert wait_for_hit(proxy1, path)
    assert request(proxy1, path)[2] == request(origin, path)[2]
    log = proxy1.run("cat /var/log/squid/access.log").stdout
    assert re.search(rf"TCP_\w*HIT/200 \d+ GET http://origin1{path}", log)


def test_squid_caches_images_in_ufs_and_rock_store(whole_lab: Lab, plain_proxy1: Host) -> None:
    assert_images_are_cached(plain_proxy1, whole_lab.origin1, "ufs")
    plain_proxy1.ssh("squid -k shutdown && while pgrep -x squid >/dev/null; do sleep 0.02; done")
    store = f"cache_dir rock {STORE_MOUNT} 300"
    plain_proxy1.ssh(f"rm -rf {STORE_MOUNT}/* /var/log/squid/access.log && sed -i 's,^cache_dir .*,{store},' {CONFIG}")
    plain_proxy1.ssh("squid -z --foreground && squid")
    assert_images_are_cached(plain_proxy1, whole_lab.origin1, "rock")


def test_atime_options_change_access_time_updates(lab: Lab) -> None:
    """Reads that update the access time: none (noatime), all (strictatime), the first after a write (relatime)."""
    host = lab.web1
    mount, file = web1.ATIME_MOUNT, web1.ATIME_FILE
    list_atime = f"LC_ALL=C ls -lu --time-style=full-iso {file}"
    assert f" {mount} ext4 rw,relatime" in host.run("cat /proc/mounts").stdout
    updated = {}
    for option in ("noatime", "strictatime", "relatime"):
        host.ssh(f"mount -o remount,{option} {mount} && touch -d '2 days ago' {file}")
        times = [host.ssh(list_atime).stdout]
        for _ in range(2):
            assert request(host, "/atime/small.txt")[2].decode() == SMALL
            times.append(host.ssh(list_atime).stdout)
        updated[option] = (times[0] != times[1], times[1] != times[2])
    assert updated == {"noatime": (False, False), "strictatime": (True, True), "relatime": (True, False)}
