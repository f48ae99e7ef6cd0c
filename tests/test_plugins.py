"""Packages of others: an installed one adds a server, an import and an export; a broken one is left out in one line."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cockpit.model.knobs import KNOB_KINDS, LIVE_KNOBS
from cockpit.servers.registry import GRAMMARS, OTHER_KNOBS
from tests.data import data_of
from tests.waiting import free_port, wait_until

DATA = data_of(__file__)

EXAMPLE = Path(__file__).parent / "extension" / "webcockpit_example"
POINTS = {
    "servers": "example = webcockpit_example.server:KIND",
    "imports": "example = webcockpit_example.log:FORMAT",
    "exports": "tsv = webcockpit_example.table:FORMAT",
}
LOG = "#example\n0.0 10.0 200\n0.1 20.0 500\n1.2 10.0 200\n"


def install(folder: Path, points: Mapping[str, str], name: str = "webcockpit-example") -> Path:
    """Install a package into a folder as pip does: modules, and metadata with entry points."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    sections = (f"[webcockpit.{table}]\n{lines}\n" for table, lines in points.items())
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    if not (folder / EXAMPLE.name).exists():
        shutil.copytree(EXAMPLE, folder / EXAMPLE.name)
    return folder


def with_packages(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), str(EXAMPLE.parents[2])))
    environment = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": str(folder / "state")}
    command = (sys.executable, "-m", "cockpit", *map(str, arguments))
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.fixture
def exampled(tmp_path: Path) -> Iterator[int]:
    """A server whose process is called exampled; yields its port."""
    program, port = tmp_path / "exampled", free_port()
    program.symlink_to(Path(sys.executable).resolve())
    log = tmp_path / "log"
    with (
        log.open("w") as file,
        subprocess.Popen([program, "-um", "http.server", "-b", "127.0.0.1", str(port)], stdout=file) as process,
    ):
        try:
            wait_until(lambda: "Serving" in log.read_text())
            yield port
        finally:
            process.terminate()


def test_example_adds_a_server_an_import_and_an_export(tmp_path: Path, exampled: int) -> None:
    folder = install(tmp_path / "site", POINTS)
    log, recording, profile = (folder / name for name in ("run.log", "run.cockpit", "p.toml"))
    log.write_text(LOG)
    done = with_packages(folder, "import", log, "-o", recording)
    assert done.returncode == 0 and done.stderr.startswith(f"{log}: example log\n"), done.stderr
    assert with_packages(folder, "export", recording, "-o", "run.tsv").returncode == 0
    assert (folder / "run.tsv").read_text() == "1\t3\n"
    assert "s.tsv          # completed responses per run" in with_packages(folder, "export", "--help").stdout
    done = with_packages(folder, "new", f"http://127.0.0.1:{exampled}/", "--host", ".", "-o", profile)
    assert done.returncode == 0 and "on the target's port: Example, 1 process" in done.stderr, done.stderr
    assert 'processes = ["exampled"]' in profile.read_text()


BROKEN = DATA["broken"]
TAKEN = """
from webcockpit_example.server import KIND as EXAMPLE
KIND, KNOB, NAME = EXAMPLE._replace(name="nginx"), EXAMPLE._replace(name="mount"), EXAMPLE._replace(name="../x")
TYPE, PATTERN = EXAMPLE._replace(name="x", files="/x"), EXAMPLE._replace(name="x", include="(")
"""
TAKEN_CSV = "from webcockpit_example.table import FORMAT\nCSV = FORMAT._replace(name='csv')\n"

# A command that reads the table.
USES = {"servers": "schema profile", "imports": "import run.log", "exports": "export --help"}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_package_is_left_out_in_one_line(case: str, tmp_path: Path) -> None:
    points, problem = BROKEN[case]
    folder = install(tmp_path, points, "broken")
    (folder / "exits.py").write_text("raise SystemExit(7)\n")
    (folder / "taken.py").write_text(TAKEN)
    (folder / "csv_again.py").write_text(TAKEN_CSV)
    (folder / "run.log").write_text("unknown\n")
    [group] = points
    done = with_packages(folder, *USES[group].split())
    assert done.returncode == (2 if group == "imports" else 0) and "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if "broken" in line]
    assert line.startswith(f"cockpit: package broken: x of webcockpit.{group} is left out: ") and problem in line


def test_second_package_with_the_same_name_is_left_out(tmp_path: Path) -> None:
    folder = install(install(tmp_path, POINTS), {"exports": "tsv2 = webcockpit_example.table:FORMAT"}, "second")
    done = with_packages(folder, "export", "--help")
    assert "package second: tsv2 of webcockpit.exports is left out: the name 'tsv' is in use" in done.stderr


def test_errors_of_a_package_in_use_are_one_line(tmp_path: Path) -> None:
    points = {"imports": "x = fails:IMPORT", "exports": "x = fails:EXPORT"}
    folder = install(install(tmp_path, POINTS), points, "fails")
    (folder / "fails.py").write_text(
        "from webcockpit_example import log, table\n"
        "def read(lines): yield 1 / 0\n"
        "def export(state): yield 1\n"
        'IMPORT = log.FORMAT._replace(tool="failing", matches=lambda first: first.startswith("#fails"), read=read)\n'
        'EXPORT = table.FORMAT._replace(name="failing", function="fails:export")\n'
    )
    (folder / "run.log").write_text(LOG)
    (folder / "fails.log").write_text("#fails\n")
    assert with_packages(folder, "import", "run.log", "-o", "run.cockpit").returncode == 0
    done = with_packages(folder, "export", "run.cockpit", "--format", "failing")
    assert (done.returncode, done.stderr) == (
        2,
        "cockpit: package fails: failing: TypeError: fails:export yields int, not str\n",
    )
    done = with_packages(folder, "import", "fails.log")
    problem = "fails.log: package fails: cannot read it: ZeroDivisionError: division by zero"
    assert (done.returncode, done.stderr) == (2, f"cockpit: {problem}\n")


def test_without_packages_no_metadata_is_imported() -> None:
    script = "import cockpit.servers.registry, cockpit.cli, sys; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_names_of_knob_kinds_are_reserved() -> None:
    assert {*LIVE_KNOBS, "keyvalue", "systemd"} == set(OTHER_KNOBS)
    assert set(KNOB_KINDS) == {*GRAMMARS, *LIVE_KNOBS}
