"""A profile that is written is read again as it was meant, whatever stands in its texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.errors import ProfileError, UsageError
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.profiles.reader import parse_profile
from cockpit.profiles.writing import Draft, profile_text, write_profile

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def test_everything_comes_back() -> None:
    host = HostConfig(
        name="web1",
        ssh="root@web1",
        processes=("apache2",),
        tail=("tail -n 3 -F /var/log/apache2/error.log",),
        status=(StatusPage(kind="apache", url="http://localhost/server-status?auto"),),
    )
    knob = Knob(
        name="KeepAlive",
        host="web1",
        file="/etc/apache2/apache2.conf",
        directive="KeepAlive",
        test="apachectl -t",
        reload="apachectl graceful",
        values=("On", "Off"),
    )
    sysctl = Knob(name="somaxconn", host="web1", kind="sysctl", key="net.core.somaxconn", min=1)
    draft = Draft(
        url="http://web1/hello.html",
        question="Is it?",
        concurrency=7,
        duration="90s",
        keepalive=False,
        hosts=(host,),
        knobs=(knob, sysctl),
        notes={"web1": ("two\nlines = 1",)},
    )
    read = parse_profile(profile_text(draft), "new", "new")
    assert (read.question, read.plan.url) == ("Is it?", "http://web1/hello.html")
    assert (read.plan.concurrency, read.plan.duration, read.plan.keepalive) == (7, 90.0, False)
    assert read.hosts == (host,)
    assert [one.name for one in read.knobs] == ["KeepAlive", "somaxconn"]
    assert (read.knobs[0].values, read.knobs[0].section, read.knobs[1].min) == (("On", "Off"), None, 1)


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_breaks_the_file(question: str, processes: str, note: str) -> None:
    host = HostConfig(name="h", processes=(processes,) if processes else ())
    draft = Draft(url="http://web1/", question=question, hosts=(host,), notes={"h": (note,)})
    read = parse_profile(profile_text(draft), "new", "new")
    assert read.question == question.strip()
    assert read.hosts == (host,)


def test_what_would_not_be_read_is_not_written() -> None:
    with pytest.raises(ProfileError, match=r"target\.url: found 'ftp://x/'"):
        profile_text(Draft(url="ftp://x/"))


def test_a_file_that_is_there_stays_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "p.toml"
    write_profile(path, "one")
    with pytest.raises(UsageError, match="exists already"):
        write_profile(path, "two")
    assert path.read_text() == "one"
    write_profile(path, "two", replace=True)
    assert path.read_text() == "two"
    with pytest.raises(UsageError, match="cannot be created"):
        write_profile(path / "below" / "it", "three")
    with pytest.raises(UsageError, match="cannot be written"):
        write_profile(path.parent, "three", replace=True)
