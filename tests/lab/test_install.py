"""`install` starts and enables nothing, and restores policy-rc.d, for every way it ends.

Each test runs it with real apt and dpkg on a temporary copy of this machine. Its table has one package, built here,
with everything that a server package installs: init script, unit, timer, cron jobs, Apache module.
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
    # The postinst of debhelper for a server, after a point where tests can pause it.
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

# The machine: apt knows only the folder; a user's service is installed and enabled.
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
# Everything that a machine starts automatically, and the metadata of policy-rc.d.
SNAPSHOT = """
snapshot() {
    find /etc/rc?.d/S* /etc/systemd /etc/cron.*/[!.]* -type l -o -type f | grep -v '[.]off-by' | sort
    find /etc/apache2/mods-enabled -printf '%p %l\\n' | sort
    stat -c '%n %i %a %u:%g %s %Y' /usr/sbin/policy-rc.d* 2>&1
    cat /usr/sbin/policy-rc.d 2>&1
    ls -d /var/lib/cockpit-lab-install 2>&1
}
snapshot >/tmp/before
"""
COMPARE = "snapshot >/tmp/after; diff /tmp/before /tmp/after && [ ! -e /run/toyd-started ] && echo 'nothing changed'\n"
RUN = 'sh /srv/given/install; echo "status $?"\n'


@pytest.fixture
def given(lab_allowed: None, tmp_path: Path) -> Path:
    """A folder with `install`, its table, and a repository with one package."""
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
    location = f"Filename: ./toyd.deb\nSize: {package.stat().st_size}\nSHA256: {digest}\n"
    (repository / "Packages").write_text(textwrap.dedent(TOY["DEBIAN/control"]) + location)
    shutil.copy(INSTALL, folder / "install")
    (folder / "packages").write_text("# a table\ntoyd toyd a toy server to try the install with\nhey2 ?hey2 a wish\n")
    return folder


@pytest.mark.parametrize("policy", ["", OWN_POLICY], ids=["no policy-rc.d", "a policy-rc.d"])
def test_install_starts_and_enables_nothing(given: Path, policy: str) -> None:
    done = throwaway.run(PREPARE + policy + SNAPSHOT + RUN + COMPARE + "toyd && ls /run/toyd-started\n" + RUN, given)
    lines = done.stdout.splitlines()
    assert lines[0] == "lab: installing for the lab, starting and enabling nothing on this machine:", done.stderr
    assert lines[1] == "lab:   toyd - a toy server to try the install with"
    assert "lab: installed" in lines
    assert "lab:   /etc/cron.d/toyd (renamed to .off-by-cockpit-lab)" in lines
    assert lines[-4:] == ["status 0", "nothing changed", "/run/toyd-started", "status 0"]


def test_package_starts_without_install(given: Path) -> None:
    """Check the other tests: apt-get alone starts and enables the package."""
    direct = "{ apt-get update; apt-get install -y toyd; } >/dev/null 2>&1\n"
    done = throwaway.run(PREPARE + OWN_POLICY + SNAPSHOT + direct + COMPARE + "ls /run/toyd-started", given)
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


PAUSED = """
touch /run/hold
sh /srv/given/install >/tmp/output 2>&1 & install=$!
while [ ! -e /run/postinst-reached ]; do sleep 0.02; done
sh /usr/sbin/policy-rc.d toyd start; echo "denied with $?"
"""


def test_terminated_install_restores_machine(given: Path) -> None:
    script = 'kill -TERM $install; rm /run/hold; wait $install; echo "status $?"\n'
    done = throwaway.run(PREPARE + OWN_POLICY + SNAPSHOT + PAUSED + script + COMPARE, given)
    assert done.stdout.splitlines() == ["denied with 101", "status 143", "nothing changed"], done.stderr


def test_next_install_cleans_up_after_killed_install(given: Path) -> None:
    script = """
    kill -KILL $install; wait $install 2>/dev/null; echo "status $?"
    sh /srv/given/install & next=$!
    rm /run/hold; wait $next; echo "status $?"
    """
    done = throwaway.run(PREPARE + OWN_POLICY + SNAPSHOT + PAUSED + script + COMPARE, given)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["denied with 101", "status 137"], done.stderr
    assert "lab:   /etc/systemd/system/multi-user.target.wants/toyd.service" in lines
    assert lines[-2:] == ["status 0", "nothing changed"]


def test_failed_install_reports_error(given: Path) -> None:
    (given / "packages").write_text("toyd no-such-package a package that is not there\n")
    done = throwaway.run(PREPARE + OWN_POLICY + SNAPSHOT + RUN + COMPARE, given)
    assert done.stdout.splitlines()[-2:] == ["status 1", "nothing changed"]
    error = done.stderr.splitlines()
    assert error[0] == "lab: cannot download: no-such-package (E: Unable to locate package no-such-package)"
    assert error[1:] == ["lab: install by hand, or leave the lab out with LAB=0"]


def test_next_install_completes_failed_install(given: Path) -> None:
    first = "touch /run/fail\n" + RUN + "rm /run/fail\n"
    done = throwaway.run(PREPARE + OWN_POLICY + SNAPSHOT + first + RUN + COMPARE + RUN, given)
    statuses = [line for line in done.stdout.splitlines() if not line.startswith("lab:")]
    assert statuses == ["status 1", "status 0", "nothing changed", "status 0"]
    assert done.stderr.splitlines()[0].startswith("lab: cannot install: toyd (E: Sub-process")


def test_non_root_user_gets_list_of_missing_packages(given: Path) -> None:
    as_nobody = 'setpriv --reuid nobody --clear-groups sh /srv/given/install; echo "status $?"\n'
    done = throwaway.run(PREPARE + SNAPSHOT + as_nobody + COMPARE, given)
    message = "lab: lab tests will skip: not root on Debian, and these are missing: toyd"
    assert done.stdout.splitlines() == [message, "status 0", "nothing changed"], done.stderr


def test_install_does_nothing_if_all_packages_exist(lab_allowed: None) -> None:
    snapshot = ["sh", "-c", "stat -c '%i %a %u:%g %s %Y' /usr/sbin/policy-rc.d*; cat /usr/sbin/policy-rc.d"]
    before = subprocess.run(snapshot, capture_output=True, text=True).stdout
    done = subprocess.run(["sh", str(INSTALL)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert subprocess.run(snapshot, capture_output=True, text=True).stdout == before
