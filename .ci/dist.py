"""`make dist`: source archive, wheel, single file and SBOM in dist/, built twice with the same bytes, then used."""

from __future__ import annotations

import email
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
import zipfile
from datetime import UTC, datetime
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = os.environ.get("PYTHONS", "3.11 3.12 3.13 3.14").split()
MACHINES = ("x86_64", "aarch64")
# Versions of glibc that wheels are built for; the newest one is that of the oldest distribution with Python 3.11.
GLIBC = (28, 27, 26, 24, 17, 12, 5)
EPOCH = (
    os.environ.get("SOURCE_DATE_EPOCH")
    or subprocess.check_output(("git", "log", "-1", "--format=%ct"), cwd=ROOT, text=True).strip()
)
SINGLE_FILE = "webcockpit.pyz"


def run(*command: str | Path, **variables: str) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **variables}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment).stdout


def build(folder: Path) -> Path:
    """Build source archive and wheel; return the wheel."""
    (ROOT / "cockpit.1").write_text(run(sys.executable, "-m", "cockpit", "--man"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    return next(folder.glob("*.whl"))


def download(wheel: Path, python: str, machine: str, folder: Path) -> list[Path]:
    """Return the wheel and those of its dependencies for an interpreter."""
    into = folder / f"{python}-{machine}"
    abi = f"cp{python.replace('.', '')}"
    platforms = (f"manylinux_2_{minor}_{machine}" for minor in GLIBC)
    options = [f"--platform={each}" for each in (*platforms, f"manylinux2014_{machine}")]
    options += [f"--abi={each}" for each in (abi, "abi3", "none")]
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--only-binary=:all:")
    run(*pip, f"--dest={into}", f"--python-version={python}", *options, wheel)
    return sorted(into.glob("*.whl"))


def by_name(targets: dict[str, list[Path]]) -> dict[str, Path]:
    """Return the wheels of all interpreters, each once."""
    return {wheel.name: wheel for each in targets.values() for wheel in each}


def write_single_file(path: Path, targets: dict[str, list[Path]]) -> None:
    wheels = by_name(targets)
    digest = hashlib.sha256("".join(f"{name} {sha256(wheels[name])}\n" for name in sorted(wheels)).encode())
    names = {target: [wheel.name for wheel in each] for target, each in targets.items()}
    listed = json.dumps({"digest": digest.hexdigest()[:16], "targets": names}, sort_keys=True).encode()
    date = datetime.fromtimestamp(int(EPOCH), UTC).timetuple()[:6]
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            parts = [("__main__.py", (ROOT / ".ci/single_file.py").read_bytes()), ("targets.json", listed)]
            for name, content in (*parts, *((name, wheels[name].read_bytes()) for name in sorted(wheels))):
                archive.writestr(zipfile.ZipInfo(name, date), content)
    path.chmod(0o755)


def write_sbom(path: Path, wheel: Path, wheels: dict[str, Path]) -> None:
    """Write a CycloneDX document with one component per wheel of the single file."""
    root = component(wheel)
    others = [component(wheels[name]) for name in sorted(wheels.keys() - {wheel.name})]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(int(EPOCH), UTC).isoformat(), "component": root},
        "components": others,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": [each["bom-ref"] for each in others]}],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def component(wheel: Path) -> dict[str, object]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        facts = email.message_from_bytes(archive.read(name))
    purl = f"pkg:pypi/{facts['Name'].lower().replace('_', '-')}@{facts['Version']}?file_name={wheel.name}"
    classified = (each.rpartition(" :: ")[2] for each in facts.get_all("Classifier", ()) if each.startswith("License"))
    words = facts["License-Expression"] or (facts["License"] or "").partition("\n")[0] or ", ".join(classified)
    known = {"licenses": [{"license": {"name": words}}]} if words else {}
    hashes = [{"alg": "SHA-256", "content": sha256(wheel)}]
    named = {"type": "library", "bom-ref": purl, "name": facts["Name"], "version": facts["Version"], "purl": purl}
    return {**named, "hashes": hashes, **known}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves files without a line per request."""

    def log_message(self, *_: object) -> None:
        pass


def check(dist: Path, wheels: Path, scratch: Path) -> None:
    """Install the wheel into a fresh environment, from the downloaded wheels; load a server with it and with the single
    file."""
    venv.create(scratch / "venv", with_pip=True)
    python, cockpit = scratch / "venv/bin/python", scratch / "venv/bin/webcockpit"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", f"--find-links={wheels}", next(dist.glob("*.whl")))
    assert (scratch / "venv/share/man/man1/cockpit.1").stat().st_size > 10_000
    home = {"HOME": str(scratch), "XDG_CACHE_HOME": str(scratch / "cache")}
    with HTTPServer(("127.0.0.1", 0), SilentHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/LICENSE"
        for command in ((cockpit,), (sys.executable, dist / SINGLE_FILE)):
            assert "/share/webcockpit/profiles" in run(*command, "completion", "bash", **home)
            result = run(*command, "run", url, "-n", "20", "--json", "--no-record", **home)
            assert json.loads(result)["completed"] == 20
        server.shutdown()


def main() -> None:
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="webcockpit-dist-") as scratch:
        downloads, again = Path(scratch) / "wheels", Path(scratch) / "again"
        targets: dict[str, list[Path]] = {}
        for folder in (dist, again):
            wheel = build(folder)
            targets = targets or {
                f"{python}-{machine}": download(wheel, python, machine, downloads)
                for python in PYTHONS
                for machine in MACHINES
            }
            write_single_file(folder / SINGLE_FILE, targets)
            write_sbom(folder / "webcockpit.cdx.json", wheel, by_name(targets))
        names = sorted(path.name for path in dist.iterdir())
        assert [sha256(dist / name) for name in names] == [sha256(again / name) for name in names], "not reproducible"
        check(dist, downloads / f"{sys.version_info[0]}.{sys.version_info[1]}-{os.uname().machine}", Path(scratch))
        (dist / "SHA256SUMS").write_text("".join(f"{sha256(dist / name)}  {name}\n" for name in names))
    for path in sorted(dist.iterdir()):
        print(f"{path.stat().st_size / 2**20:8.1f} MiB  {path.relative_to(ROOT)}")


main()
