"""`install` asks, starts and enables nothing, and names what it installed, also after an install that was killed.

It runs with real apt and dpkg on a temporary copy of this machine. Its table has one package, built here, with
everything that a server package installs: init script, unit, timer, cron jobs, Apache module.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.data import data_of
from tests.lab import throwaway
from tests.lab.requirements import TABLE

DATA = data_of(__file__)

INSTALL = TABLE.with_name("install")
TOY = DATA["toy"]
# apt knows only the folder. `snapshot` lists everything that starts automatically, and the machine's policy-rc.d.
PREPARE = DATA["prepare"]
SCRIPT = DATA["script"]
EXPECTED = DATA["expected"]


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
        path.write_text(content)
        path.chmod(0o755 if content.startswith("#!") else 0o644)
    package = repository / "toyd.deb"
    build = ["dpkg-deb", "--root-owner-group", "--build", str(folder / "toyd"), str(package)]
    subprocess.run(build, check=True, capture_output=True)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    location = f"Filename: ./toyd.deb\nSize: {package.stat().st_size}\nSHA256: {digest}\n"
    (repository / "Packages").write_text(TOY["DEBIAN/control"] + location)
    shutil.copy(INSTALL, folder / "install")
    (folder / "packages").write_text("# a table\ntoyd toyd a toy server\nhey2 ?hey2 a wish\n")
    return folder


def test_install_asks_and_starts_and_enables_nothing(given: Path) -> None:
    done = throwaway.run(PREPARE + SCRIPT, given)
    assert done.stdout.splitlines() == EXPECTED.splitlines(), done.stderr


def test_install_does_nothing_if_all_packages_exist() -> None:
    done = subprocess.run(["sh", str(INSTALL)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
