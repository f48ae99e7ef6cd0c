"""Builds a wheel of cockpit and installs it on a generator, in a virtual environment of the user."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from shlex import quote

import cockpit
from cockpit import DISTRIBUTION
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.host.samples import GeneratorConfig, HostConfig
from cockpit.model.text import sanitize

# Timeout (s) of the installation, which downloads the dependencies.
_TIMEOUT = 600.0
# Parts of the package that a generator does not need.
_LEFT_OUT = ("__pycache__",)
_WHEEL = b"Wheel-Version: 1.0\nGenerator: cockpit\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

# sh. The wheel is its standard input. A virtual environment cannot be moved, so an incomplete one is removed.
_INSTALL = r"""
set -e
venv=${XDG_STATE_HOME:-$HOME/.local/state}/webcockpit/venv
rm -rf "$venv"
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv" >&2
cat >"$venv/@WHEEL@"
printf '%s\n' @PINNED@ >"$venv/constraints"
pip() { "$venv/bin/python" -I -m pip --quiet --disable-pip-version-check "$@"; }
pip install -c "$venv/constraints" "$venv/@WHEEL@[cluster]" >&2
trap - EXIT
"""


def wheel() -> tuple[str, bytes]:
    """Return the name and content of a wheel of the running cockpit."""
    version = cockpit.__version__
    info = f"{DISTRIBUTION}-{version}.dist-info"
    files = dict(_package_files())
    installed = metadata.distribution(DISTRIBUTION)
    # A source tree has PKG-INFO instead.
    files[f"{info}/METADATA"] = (installed.read_text("METADATA") or installed.read_text("PKG-INFO") or "").encode()
    files[f"{info}/entry_points.txt"] = (installed.read_text("entry_points.txt") or "").encode()
    files[f"{info}/WHEEL"] = _WHEEL
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return f"{DISTRIBUTION}-{version}-py3-none-any.whl", content.getvalue()


async def install(config: GeneratorConfig, ssh_config: Path | None) -> None:
    """Install this cockpit with Dask into ~/.local/state/webcockpit/venv of a generator. Raises HostError."""
    shell = await open_shell(HostConfig.of_generator(config), ssh_config)
    try:
        await _install(shell, config.name)
    finally:
        await shell.close()


async def _install(shell: Shell, name: str) -> None:
    file, content = wheel()
    # Dask of another version cannot work with this one.
    pinned = " ".join(quote(f"{package}=={metadata.version(package)}") for package in ("dask", "distributed"))
    program = _INSTALL.replace("@WHEEL@", file).replace("@PINNED@", pinned)
    done = await shell.run(program, input=content, timeout=_TIMEOUT)
    if done.exit_status:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
        raise HostError(f"the installation failed: {sanitize(lines[-1], 300)}", subject=name)


def _package_files() -> Iterator[tuple[str, bytes]]:
    root = Path(cockpit.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and not set(path.parts) & set(_LEFT_OUT):
            yield f"cockpit/{path.relative_to(root).as_posix()}", path.read_bytes()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
