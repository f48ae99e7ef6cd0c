"""Host names in ssh_config."""

from __future__ import annotations

from pathlib import Path

from cockpit.hosts.ssh_aliases import aliases


def test_host_names_are_listed_once_without_patterns(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".ssh"
    (home / "conf.d").mkdir(parents=True)
    (home / "conf.d" / "b.conf").write_text("Host db1\n  HostName 10.0.0.9\n")
    (home / "conf.d" / "a.conf").write_text("Host web1\nInclude config\n")
    (home / "config").write_text(
        "# Host never\nHost web1 web2 *.example.com !bad\n  User root\nhost=proxy1\nInclude conf.d/*.conf\n"
        'Match host x\nHost *\nHost "with space\n'
    )
    assert aliases(home / "config") == ["web1", "web2", "proxy1", "db1"]


def test_missing_file_has_no_names(tmp_path: Path) -> None:
    assert aliases(tmp_path / "none") == []
