"""The start of webcockpit.pyz: unpack the wheels for this interpreter once, and run cockpit from there.

They become a virtual environment in the user's cache, since compiled modules do not load from an archive. Runs in
Python 3.6, so that an old Python gets the error below.
"""

import io
import json
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def main():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "webcockpit"
    target = f"{sys.version_info[0]}.{sys.version_info[1]}-{platform.machine()}"
    with zipfile.ZipFile(str(Path(__file__).absolute().parent)) as archive:
        known = json.loads(archive.read("targets.json").decode())
        if target not in known["targets"] or platform.libc_ver()[0] != "glibc":
            sys.exit(
                f"webcockpit.pyz: runs on glibc with Python {', '.join(sorted(known['targets']))}; this is {target}"
            )
        folder = cache / f"{known['digest']}-{target}"
        python = folder / "bin/python"
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            if cache.stat().st_uid != os.getuid() or cache.stat().st_mode & 0o022:
                sys.exit(f"{cache}: other users can write there; set XDG_CACHE_HOME to another folder")
            if not python.exists():
                unpack(archive, known["targets"][target], folder)
        except OSError as error:
            sys.exit(f"{cache}: cannot unpack: {error.strerror}; set XDG_CACHE_HOME to another folder")
    os.execv(str(python), [str(python), "-I", "-m", "cockpit", *sys.argv[1:]])


def unpack(archive, wheels, folder):
    """Unpack the wheels into a virtual environment, which appears complete. Raises OSError."""
    temporary = Path(tempfile.mkdtemp(dir=str(folder.parent)))
    modules = temporary / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    base = Path(sys.executable).resolve()
    (temporary / "bin").mkdir()
    (temporary / "bin/python").symlink_to(base)
    (temporary / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    for name in wheels:
        with zipfile.ZipFile(io.BytesIO(archive.read(name))) as wheel:
            for info in wheel.infolist():
                # NAME.data/data/ has files for the environment, other folders of NAME.data scripts and headers.
                first, _, inner = info.filename.partition(".data/")
                if not inner or "/" in first:
                    wheel.extract(info, str(modules))
                elif inner.startswith("data/"):
                    info.filename = inner[len("data/") :]
                    wheel.extract(info, str(temporary))
    shutil.rmtree(str(folder), ignore_errors=True)
    try:
        temporary.rename(folder)
    except OSError:
        # Another process was faster.
        shutil.rmtree(str(temporary))


main()
