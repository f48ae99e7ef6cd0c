"""Tails and status pages of a host in a profile."""

import pytest

from cockpit.model.errors import ProfileError
from cockpit.model.hosts import StatusPage
from cockpit.profiles.reader import parse_profile

HOST = '[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\n'
PAGE = 'status = [{{ kind = "{}", url = "{}" }}]'


def test_tails_and_status_pages() -> None:
    text = HOST + (
        'tail = ["tail -F /var/log/apache2/error.log", "sar -b 1"]\n'
        'status = [{ kind = "apache", url = "http://localhost/server-status?auto" },\n'
        '  { kind = "tomcat", url = "https://localhost:8443/manager/status?XML=true", auth = "me:sesame" }]\n'
    )
    host = parse_profile(text, "x", "x").hosts[0]
    assert host.tail == ("tail -F /var/log/apache2/error.log", "sar -b 1")
    assert host.status[0] == StatusPage(kind="apache", url="http://localhost/server-status?auto")
    assert host.status[1].auth == "me:sesame"
    assert "sesame" not in repr(host.without_secrets())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('tail = [" "]', "host web1.tail: found ' '; allowed: a shell command"),
        ('tail = ["a\\u0000b"]', "host web1.tail: found"),
        (PAGE.format("iis", "http://localhost/"), "host.0.status.0.kind: found 'iis'; allowed: apache"),
        (PAGE.format("apache", "localhost/"), "host.0.status.0.url: found 'localhost/'"),
        (PAGE.format("apache", "http://"), "host web1.status.url: found 'http://'; allowed: http://host[:port]/path"),
        (PAGE.format("apache", "http://x:99999/"), "host web1.status.url: found 'http://x:99999/'"),
        (PAGE.format("apache", "http://me:sesame@x/"), 'contains a user; use auth = "user:password"'),
        ('status = [{ kind = "nginx", url = "http://x/", auth = "sesame" }]', "status.auth: found no colon"),
        ('status = [{ kind = "nginx", url = "http://x/", user = "me" }]', "unknown key 'user'; allowed: kind, url"),
        (PAGE.format("nginx", "http://[x/"), "host web1.status.url: found 'http://[x/'"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(HOST + text, "x", "x.toml")
    assert said in str(caught.value)
    assert "sesame" not in str(caught.value)
