"""The start of `webcockpit.pyz` (`make dist`), with a small wheel in place of cockpit."""

import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TARGET = f"{sys.version_info[0]}.{sys.version_info[1]}-{platform.machine()}"
PROGRAM = """\
import sys
print(sys.argv[1:], sys.flags.isolated, open(f"{sys.prefix}/share/webcockpit/profiles/x.toml").read())
"""
WHEEL = {
    "cockpit/__init__.py": "",
    "cockpit/__main__.py": PROGRAM,
    "webcockpit-1.data/data/share/webcockpit/profiles/x.toml": "shipped",
    "webcockpit-1.data/scripts/cockpit": "#!python",
}


def single_file(folder: Path, target: str = TARGET) -> Path:
    with zipfile.ZipFile(folder / "x.whl", "w") as wheel:
        for name, content in WHEEL.items():
            wheel.writestr(name, content)
    with zipfile.ZipFile(folder / "webcockpit.pyz", "w") as archive:
        archive.write(ROOT / ".ci/single_file.py", "__main__.py")
        archive.writestr("targets.json", json.dumps({"digest": "d", "targets": {target: ["x.whl"]}}))
        archive.write(folder / "x.whl", "x.whl")
    return folder / "webcockpit.pyz"


def start(file: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, file, "run", "-n 1")
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_wheels_are_unpacked_once_and_run_isolated(tmp_path: Path) -> None:
    file, cache = single_file(tmp_path), tmp_path / "cache"
    for _ in range(2):
        done = start(file, cache)
        assert (done.returncode, done.stdout) == (0, "['run', '-n 1'] 1 shipped\n"), done.stderr
    [folder] = (cache / "webcockpit").iterdir()
    assert folder.name == f"d-{TARGET}" and sorted(path.name for path in folder.iterdir()) == [
        *("bin", "lib", "pyvenv.cfg", "share")
    ]
    # A Python that is gone is replaced.
    (folder / "bin/python").unlink()
    (folder / "bin/python").symlink_to("/nowhere")
    assert start(file, cache).returncode == 0


@pytest.mark.parametrize(
    ("target", "mode", "message"),
    [("3.99-vax", 0o700, f"runs on glibc with Python 3.99-vax; this is {TARGET}"), (TARGET, 0o777, "other users can")],
)
def test_other_machines_and_unsafe_caches_are_refused(tmp_path: Path, target: str, mode: int, message: str) -> None:
    cache = tmp_path / "cache"
    (cache / "webcockpit").mkdir(parents=True)
    (cache / "webcockpit").chmod(mode)
    done = start(single_file(tmp_path, target), cache)
    assert done.returncode == 1 and message in done.stderr and not list((cache / "webcockpit").iterdir())


def test_unusable_cache_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    done = start(single_file(tmp_path), tmp_path / "cache")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "set XDG_CACHE_HOME" in done.stderr
