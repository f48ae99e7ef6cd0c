"""`install` asks, starts and enables nothing, and names what it installed, also after an install that was killed.

It runs with real apt and dpkg on a temporary copy of this machine. Its table has one package, built here, with
everything that a server package installs: init script, unit, timer, cron jobs, Apache module.
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
    # The postinst of debhelper for a server, after a point where the test pauses it.
    "DEBIAN/postinst": """\
        #!/bin/sh
        set -e
        touch /run/postinst-reached
        while [ -e /run/hold ]; do sleep 0.02; done
        deb-systemd-helper enable toyd.service >/dev/null
        deb-systemd-helper enable toyd.timer >/dev/null
        update-rc.d toyd defaults >/dev/null
        rm -f /etc/apache2/mods-enabled/mpm_*
        ln -sf ../mods-available/mpm_toy.load /etc/apache2/mods-enabled/mpm_toy.load
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
        # Default-Start: 2 3 4 5
        # Default-Stop: 0 1 6
        ### END INIT INFO
        [ "$1" != start ] || /usr/sbin/toyd
        """,
    "lib/systemd/system/toyd.service": "[Service]\nExecStart=/usr/sbin/toyd\n[Install]\nWantedBy=multi-user.target\n",
    "lib/systemd/system/toyd.timer": "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n",
    "etc/cron.d/toyd": "* * * * * root /usr/sbin/toyd\n",
}
# apt knows only the folder. `snapshot` lists everything that starts automatically, and the machine's policy-rc.d.
PREPARE = """
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/srv/given/repository ./' >/etc/apt/sources.list
printf '#!/bin/sh\\nexit 0\\n' >/usr/sbin/policy-rc.d; chmod 711 /usr/sbin/policy-rc.d
mkdir -p /etc/apache2/mods-enabled
ln -sf ../mods-available/mpm_mine.load /etc/apache2/mods-enabled/mpm_mine.load
snapshot() {
    find /etc/rc?.d/S* /etc/systemd /etc/cron.*/[!.]* -type l -o -type f | grep -v '[.]off-by' | sort
    find /etc/apache2/mods-enabled -printf '%p %l\\n' | sort
    stat -c '%n %i %a %u:%g %s %Y' /usr/sbin/policy-rc.d*; cat /usr/sbin/policy-rc.d
    ls -d /var/lib/cockpit-lab-install /run/toyd-started 2>&1
}
compare() { snapshot >/tmp/after; diff /tmp/before /tmp/after && echo 'nothing changed'; }
snapshot >/tmp/before
"""
SCRIPT = """
sh /srv/given/install; echo "status $?"
echo n | script -eqc 'sh /srv/given/install' /dev/null >/tmp/output; code=$?; tail -n 1 /tmp/output; echo "status $code"
setpriv --reuid nobody --clear-groups sh /srv/given/install 2>&1; echo "status $?"
touch /run/hold
YES=1 sh /srv/given/install >/tmp/output 2>&1 & install=$!
while [ ! -e /run/postinst-reached ]; do sleep 0.02; done
sh /usr/sbin/policy-rc.d toyd start; echo "denied with $?"
kill -KILL $install; wait $install 2>/dev/null; echo "status $?"
sh /srv/given/install >/tmp/output 2>&1 & next=$!
rm /run/hold; wait $next; echo "status $?"; cat /tmp/output
compare
sh /srv/given/install; echo "status $?"
$(sed -n 's/^lab: to remove them: //p' /tmp/output) -y >/dev/null; [ ! -e /usr/sbin/toyd ] || echo kept
echo y | script -eqc 'sh /srv/given/install' /dev/null >/tmp/output; echo "status $?"; tail -n 1 /tmp/output; compare
sh /srv/given/install cron-on | grep toyd
"""
EXPECTED = """\
lab: missing packages; an install starts and enables nothing on this machine:
lab:   toyd - a toy server
lab: no terminal for the question; to install: YES=1 sh /srv/given/install
status 1
Install these 1 packages? [y/N] status 1
lab: not root on Debian, and these packages are missing: toyd
status 1
denied with 101
status 137
status 0
lab: switched off again what the packages had enabled:
lab:   /etc/apache2/mods-enabled/mpm_toy.load
lab:   /etc/cron.d/toyd (renamed to .off-by-cockpit-lab; undo: sh /srv/given/install cron-on)
lab:   toyd (runlevel 2)
lab:   toyd (runlevel 3)
lab:   toyd (runlevel 4)
lab:   toyd (runlevel 5)
lab:   /etc/systemd/system/multi-user.target.wants/toyd.service
lab:   /etc/systemd/system/timers.target.wants/toyd.timer
lab: installed, with dependencies: toyd
lab: to remove them: apt-get purge toyd
nothing changed
status 0
status 0
lab: to remove them: apt-get purge toyd
nothing changed
lab: /etc/cron.d/toyd: cron runs it again
"""


@pytest.fixture
def given(tmp_path: Path) -> Path:
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
    (folder / "packages").write_text("# a table\ntoyd toyd a toy server\nhey2 ?hey2 a wish\n")
    return folder


def test_install_asks_and_starts_and_enables_nothing(given: Path) -> None:
    done = throwaway.run(PREPARE + SCRIPT, given)
    assert done.stdout.splitlines() == EXPECTED.splitlines(), done.stderr


def test_install_does_nothing_if_all_packages_exist() -> None:
    done = subprocess.run(["sh", str(INSTALL)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
