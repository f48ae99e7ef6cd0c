"""URLs, lists of paths and SSH destinations as people write them."""

from pathlib import Path

import pytest

from cockpit.hosts.ssh.settings import Destination
from cockpit.load.http.request import target_of
from cockpit.model.load.checks import Invalid
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.plan import NAMED, checked_url, paths_of
from cockpit.profiles.profile import Profile
from cockpit.setup.profile_draft import hosts_named

TARGET = "http://127.0.0.1:1/"


def test_letters_and_spaces_are_encoded_and_other_characters_are_named() -> None:
    assert target_of(checked_url("http://127.0.0.1:1/ä?q=a b")).path == "/%C3%A4?q=a%20b"
    for char, shown in (("\t", "%09"), ("\n", "%0A"), ("\xa0", "%C2%A0"), ("\x1b", "%1B")):
        with pytest.raises(Invalid, match=f"allowed: no .*; write it as {shown}"):
            checked_url(f"http://127.0.0.1:1/a{char}b")
    with pytest.raises(Invalid):
        checked_url("http://a b/")


@pytest.mark.parametrize(
    ("url", "name"),
    [("http://web1/", "web1"), ("https://me:sesame@web1:8443/a/b.html?q=1", "web1:8443/a/b.html")],
)
def test_load_without_a_profile_is_named_after_its_target(url: str, name: str) -> None:
    assert Profile.of_url(LoadPlan(url=url)).name == name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\ufeff/a\r\n\r\n# no path\n/ä b\n", ("/a", "/ä b")),
        (f"{TARGET}a\n/b\u2028c\n", "line|no "),
        ("http://other.example/a\n/b\n", "only URLs of http://127.0.0.1:1"),
        ("/a\t200\n/b\t17\n", "no .*write it as %09"),
        (f"{TARGET}a?b=1\n", ("/a?b=1",)),
    ],
)
def test_lists_of_paths(text: str, found: tuple[str, ...] | str, tmp_path: Path) -> None:
    (tmp_path / "urls").write_text(text)
    if isinstance(found, tuple):
        assert paths_of(str(tmp_path / "urls"), "sequence", 1, NAMED, TARGET).listed == found
    else:
        with pytest.raises(Invalid, match=found):
            paths_of(str(tmp_path / "urls"), "sequence", 1, NAMED, TARGET)


def test_ssh_destinations_as_for_ssh() -> None:
    assert Destination.parse("ssh://root@127.0.0.1:22101/") == Destination("127.0.0.1", "root", 22101)
    assert Destination.parse("ssh://web1") == Destination("web1")
    (host,) = hosts_named(["ssh://root@web1.example.org:2222"])
    assert (host.name, host.ssh) == ("web1", "root@web1.example.org:2222")
