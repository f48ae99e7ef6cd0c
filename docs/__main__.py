"""`make docs`: build the site from help topics, `cockpit --spec` and recordings.

No page of it requests anything from another host. pip downloads the player; the rest needs no network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.pages import HERE, casts, write_pages

_ASSETS = "mkdocs_asciinema_player/assets"
# Session time in seconds: start of the cast, its first picture, between frames.
TIMES = {"under-load": (43, 76, 3), "failures": (0, 16, 2), "two-hosts": (0, 12, 2)}


def build(site: Path) -> None:
    """Write the site; an existing folder is replaced. Raises CalledProcessError if a program fails."""
    with TemporaryDirectory(prefix="cockpit-docs-") as name:
        work = Path(name)
        shutil.copy(HERE / "zensical.toml", work)
        write_pages(work / "pages")
        _write_player(work / "pages" / "player", work)
        # Side by side: each takes seconds of CPU.
        exports = [_export(cast, work) for cast in sorted(casts())]
        codes = [export.wait() for export in exports]
        for export, code in zip(exports, codes, strict=True):
            if code:
                raise subprocess.CalledProcessError(code, export.args)
        for cast in casts():
            _write_cast(cast, work)
        program = Path(sys.executable).with_name("zensical")
        subprocess.run([program, "build", "--strict", "--config-file", work / "zensical.toml"], check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(work / "site", site)


def _export(cast: str, work: Path) -> subprocess.Popen[bytes]:
    start, _, every = TIMES[cast]
    recording = HERE.parent / "tests" / "recordings" / f"{cast}.cockpit"
    arguments = (recording, "-o", work / f"{cast}.cast", "--at", f"{start}s", "--every", f"{every}s")
    return subprocess.Popen([sys.executable, "-m", "cockpit", "export", *arguments], cwd=HERE.parent)


def _write_cast(cast: str, work: Path) -> None:
    """Write the cast as a script that puts the player into the element of the script: it needs no request."""
    start, first, _ = TIMES[cast]
    data = json.dumps({"data": (work / f"{cast}.cast").read_text(encoding="utf-8")})
    options = json.dumps({"poster": f"npt:{first - start}", "fit": "width", "speed": 2})
    folder = work / "pages" / "casts"
    folder.mkdir(exist_ok=True)
    (folder / f"{cast}.js").write_text(
        f"AsciinemaPlayer.create({data}, document.currentScript.parentElement, {options});\n", encoding="utf-8"
    )


def _write_player(folder: Path, work: Path) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([*pip, "--require-hashes", "-r", HERE / "player.txt", "-d", work], check=True)
    folder.mkdir()
    with zipfile.ZipFile(next(work.glob("mkdocs_asciinema_player-*.whl"))) as wheel:
        for name in ("asciinema-player.min.js", "asciinema-player.css"):
            (folder / name).write_bytes(wheel.read(f"{_ASSETS}/{name}"))


if __name__ == "__main__":
    try:
        build(HERE.parent / "site")
    except subprocess.CalledProcessError as error:
        sys.exit(f"docs: exit code {error.returncode} of {' '.join(map(str, error.cmd[:4]))}; its message is above")
