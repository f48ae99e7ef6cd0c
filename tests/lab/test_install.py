"""`install` starts and enables nothing, and leaves policy-rc.d as it was, however it ends.

Each test runs it with real apt and dpkg on a throwaway copy of this machine, where its table names one package, built
here, which brings all that a server package brings: an init script, a unit, a timer, cron jobs, another Apache module.
"""

import hashlib
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.lab import throwaway
from tests.lab.requirements import TABLE

INSTALL = TABLE.with_name("install")

TOY = {
    "DEBIAN/control": """\
        Package: toyd
        Version: 1.0
        Architecture: all
        Maintainer: lab <lab@localhost>
        Description: a server that does nothing
        """,
    # What debhelper puts into the postinst of a server, after a stop at which a test can act.
    "DEBIAN/postinst": """\
        #!/bin/sh
        set -e
        touch /run/postinst-reached
        while [ -e /run/hold ]; do sleep 0.02; done
        [ ! -e /run/fail ]
        deb-systemd-helper enable toyd.service >/dev/null
        deb-systemd-helper enable toyd.timer >/dev/null
        update-rc.d toyd defaults >/dev/null
        ln -s ../mods-available/toy.load /etc/apache2/mods-enabled/toy.load
        rm -f /etc/apache2/mods-enabled/mpm_*
        ln -s ../mods-available/mpm_toy.load /etc/apache2/mods-enabled/mpm_toy.load
        invoke-rc.d toyd start
        """,
    "usr/sbin/toyd": """\
        #!/bin/sh
        touch /run/toyd-started
        """,
    "etc/init.d/toyd": """\
        #!/bin/sh
        ### BEGIN INIT INFO
        # Provides: toyd
        # Required-Start: $remote_fs
        # Required-Stop: $remote_fs
        # Default-Start: 2 3 4 5
        # Default-Stop: 0 1 6
        # Short-Description: a server that does nothing
        ### END INIT INFO
        [ "$1" != start ] || /usr/sbin/toyd
        """,
    "lib/systemd/system/toyd.service": """\
        [Service]
        ExecStart=/usr/sbin/toyd
        [Install]
        WantedBy=multi-user.target
        Alias=toy-alias.service
        """,
    "lib/systemd/system/toyd.timer": """\
        [Timer]
        OnCalendar=daily
        [Install]
        WantedBy=timers.target
        """,
    "etc/cron.d/toyd": "* * * * * root /usr/sbin/toyd\n",
    "etc/cron.daily/toyd": """\
        #!/bin/sh
        exec /usr/sbin/toyd
        """,
}

# The machine's side: apt knows only the folder, and a service of the user's is there and enabled.
PREPARE = """
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/srv/given/repository ./' >/etc/apt/sources.list
sed 's/toyd/mine/g' /srv/given/toyd/etc/init.d/toyd >/etc/init.d/mine
chmod 755 /etc/init.d/mine
update-rc.d mine defaults >/dev/null
echo '* * * * * root true' >/etc/cron.d/mine
mkdir -p /etc/systemd/system/multi-user.target.wants
printf '[Service]\\nExecStart=true\\n' >/lib/systemd/system/mine.service
ln -s /lib/systemd/system/mine.service /etc/systemd/system/multi-user.target.wants/mine.service
rm -f /usr/sbin/policy-rc.d
mkdir -p /etc/apache2/mods-enabled
ln -sf ../mods-available/mpm_mine.load /etc/apache2/mods-enabled/mpm_mine.load
"""
OWN_POLICY = "printf '#!/bin/sh\\nexit 0\\n' >/usr/sbin/policy-rc.d; chmod 711 /usr/sbin/policy-rc.d\n"
# All that a machine starts by itself, and policy-rc.d to the inode.
LOOK = """
look() {
    find /etc/rc?.d/S* /etc/systemd /etc/cron.*/[!.]* -type l -o -type f | grep -v '[.]off-by' | sort
    find /etc/apache2/mods-enabled -printf '%p %l\\n' | sort
    stat -c '%n %i %a %u:%g %s %Y' /usr/sbin/policy-rc.d* 2>&1
    cat /usr/sbin/policy-rc.d 2>&1
    ls -d /var/lib/cockpit-lab-install 2>&1
}
look >/tmp/before
"""
SAME = "look >/tmp/after; diff /tmp/before /tmp/after && [ ! -e /run/toyd-started ] && echo 'nothing changed'\n"
RUN = 'sh /srv/given/install; echo "status $?"\n'


@pytest.fixture
def given(lab_allowed: None, tmp_path: Path) -> Path:
    """A folder with `install`, its table, and a package repository of the one package in it."""
    folder = tmp_path / "given"
    repository = folder / "repository"
    repository.mkdir(parents=True)
    tmp_path.chmod(0o755)
    for name, content in TOY.items():
        path = folder / "toyd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
        path.chmod(0o755 if content.lstrip().startswith("#!") else 0o644)
    package = repository / "toyd.deb"
    build = ["dpkg-deb", "--root-owner-group", "--build", str(folder / "toyd"), str(package)]
    subprocess.run(build, check=True, capture_output=True)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    where = f"Filename: ./toyd.deb\nSize: {package.stat().st_size}\nSHA256: {digest}\n"
    (repository / "Packages").write_text(textwrap.dedent(TOY["DEBIAN/control"]) + where)
    shutil.copy(INSTALL, folder / "install")
    (folder / "packages").write_text("# a table\ntoyd toyd a toy server to try the install with\nhey2 ?hey2 a wish\n")
    return folder


@pytest.mark.parametrize("policy", ["", OWN_POLICY], ids=["no policy-rc.d", "a policy-rc.d"])
def test_install_starts_and_enables_nothing(given: Path, policy: str) -> None:
    done = throwaway.run(PREPARE + policy + LOOK + RUN + SAME + "toyd && ls /run/toyd-started\n" + RUN, given)
    lines = done.stdout.splitlines()
    assert lines[0] == "lab: installing for the lab, starting and enabling nothing on this machine:", done.stderr
    assert lines[1] == "lab:   toyd - a toy server to try the install with"
    assert "lab: installed" in lines
    assert "lab:   /etc/cron.d/toyd (renamed to .off-by-cockpit-lab)" in lines
    assert lines[-4:] == ["status 0", "nothing changed", "/run/toyd-started", "status 0"]


def test_without_install_the_package_would_start(given: Path) -> None:
    """The check of the checks: by itself the package does start, and is enabled in every way."""
    plain = "{ apt-get update; apt-get install -y toyd; } >/dev/null 2>&1\n"
    done = throwaway.run(PREPARE + OWN_POLICY + LOOK + plain + SAME + "ls /run/toyd-started", given)
    assert "nothing changed" not in done.stdout
    for path in (
        "rc2.d/S01toyd",
        "systemd/system/multi-user.target.wants/toyd.service",
        "systemd/system/toy-alias.service",
        "systemd/system/timers.target.wants/toyd.timer",
        "cron.d/toyd",
        "cron.daily/toyd",
        "apache2/mods-enabled/toy.load",
    ):
        assert f"> /etc/{path}" in done.stdout
    assert done.stdout.endswith("/run/toyd-started\n")


HELD = """
touch /run/hold
sh /srv/given/install >/tmp/said 2>&1 & install=$!
while [ ! -e /run/postinst-reached ]; do sleep 0.02; done
sh /usr/sbin/policy-rc.d toyd start; echo "denied with $?"
"""


def test_a_terminated_install_leaves_the_machine_as_it_was(given: Path) -> None:
    act = 'kill -TERM $install; rm /run/hold; wait $install; echo "status $?"\n'
    done = throwaway.run(PREPARE + OWN_POLICY + LOOK + HELD + act + SAME, given)
    assert done.stdout.splitlines() == ["denied with 101", "status 143", "nothing changed"], done.stderr


def test_after_a_killed_install_nothing_starts_and_the_next_one_tidies_up(given: Path) -> None:
    act = """
    kill -KILL $install; wait $install 2>/dev/null; echo "status $?"
    sh /srv/given/install & next=$!
    rm /run/hold; wait $next; echo "status $?"
    """
    done = throwaway.run(PREPARE + OWN_POLICY + LOOK + HELD + act + SAME, given)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["denied with 101", "status 137"], done.stderr
    assert "lab:   /etc/systemd/system/multi-user.target.wants/toyd.service" in lines
    assert lines[-2:] == ["status 0", "nothing changed"]


def test_an_install_that_fails_says_so(given: Path) -> None:
    (given / "packages").write_text("toyd no-such-package a package that is not there\n")
    done = throwaway.run(PREPARE + OWN_POLICY + LOOK + RUN + SAME, given)
    assert done.stdout.splitlines()[-2:] == ["status 1", "nothing changed"]
    error = done.stderr.splitlines()
    assert error[0] == "lab: cannot download: no-such-package (E: Unable to locate package no-such-package)"
    assert error[1:] == ["lab: install by hand, or leave the lab out with LAB=0"]


def test_an_install_that_broke_off_is_finished_by_the_next(given: Path) -> None:
    first = "touch /run/fail\n" + RUN + "rm /run/fail\n"
    done = throwaway.run(PREPARE + OWN_POLICY + LOOK + first + RUN + SAME + RUN, given)
    statuses = [line for line in done.stdout.splitlines() if not line.startswith("lab:")]
    assert statuses == ["status 1", "status 0", "nothing changed", "status 0"]
    assert done.stderr.splitlines()[0].startswith("lab: cannot install: toyd (E: Sub-process")


def test_who_is_not_root_is_told_what_is_missing(given: Path) -> None:
    as_nobody = 'setpriv --reuid nobody --clear-groups sh /srv/given/install; echo "status $?"\n'
    done = throwaway.run(PREPARE + LOOK + as_nobody + SAME, given)
    skips = "lab: lab tests will skip: not root on Debian, and these are missing: toyd"
    assert done.stdout.splitlines() == [skips, "status 0", "nothing changed"], done.stderr


def test_here_all_is_there_and_install_says_and_does_nothing(lab_allowed: None) -> None:
    look = ["sh", "-c", "stat -c '%i %a %u:%g %s %Y' /usr/sbin/policy-rc.d*; cat /usr/sbin/policy-rc.d"]
    before = subprocess.run(look, capture_output=True, text=True).stdout
    done = subprocess.run(["sh", str(INSTALL)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert subprocess.run(look, capture_output=True, text=True).stdout == before
