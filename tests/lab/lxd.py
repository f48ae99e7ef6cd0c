"""A real LXD container with this machine's /usr and nginx as process 1, run by a daemon of its own.

Its daemon keeps everything in one directory. The container has a network of its own; a proxy device of LXD listens on
the loopback of this machine.
"""

import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.containers import CONFIGURATION, INSIDE, Container
from tests.waiting import free_port, wait_until

# Links and directories of the container's root besides /usr.
_LINKS = ("bin", "sbin", "lib", "lib64")
_DIRECTORIES = ("dev", "etc", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var/lib/nginx", "var/log/nginx")
_METADATA = "architecture: x86_64\ncreation_date: 1700000000\n"
_START = 60  # s


@contextmanager
def daemon() -> Iterator[Path]:
    """Run a daemon, and yield its directory (LXD_DIR)."""
    # The path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="lxd-") as name:
        folder = Path(name)
        # Without the proxy, which refuses, the daemon would ask for lists of images in the Internet.
        environment = {**os.environ, "LXD_DIR": name, "https_proxy": "http://127.0.0.1:9"}
        with (folder / "lxd.out").open("wb") as log:
            process = subprocess.Popen(
                ["lxd", "--group", "root"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        try:
            ready = subprocess.run(["lxd", "waitready", "--timeout", str(_START)], env=environment, capture_output=True)
            if ready.returncode:
                raise RuntimeError(f"lxd did not start: {(folder / 'lxd.out').read_text().strip()}")
            yield folder
        finally:
            subprocess.run(["lxd", "shutdown", "--timeout", "20"], env=environment, capture_output=True)
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def container(directory: Path) -> Iterator[Container]:
    """Run a container whose configuration is in `directory`; LXD_DIR must name a daemon's directory."""
    port, name, pid_file = free_port(), "web1", directory.with_name("lxd.pid")
    directory.chmod(0o755)
    file = directory / "nginx.conf"
    file.write_text(f"daemon off;\n{CONFIGURATION.format(port=port)}")
    address = f"tcp:127.0.0.1:{port}"
    image = directory.with_name("image.tar")
    _write_image(image)
    start = directory / "start"
    start.write_text(f"#!/bin/sh\nip link set lo up\nexec nginx -c {INSIDE}/{file.name}\n")
    start.chmod(0o755)
    try:
        lxc("storage", "create", "pool", "dir")
        lxc("image", "import", str(image), "--alias", "usr")
        lxc("init", "usr", name, "--storage=pool", "--config=security.privileged=true", "--config=limits.memory=200MiB")
        lxc("config", "device", "add", name, "usr", "disk", "source=/usr", "path=/usr", "readonly=true")
        lxc("config", "device", "add", name, "conf", "disk", f"source={directory}", f"path={INSIDE}")
        lxc("config", "device", "add", name, "http", "proxy", f"listen={address}", f"connect={address}")
        lxc("config", "set", name, "raw.lxc", f"lxc.init.cmd = {INSIDE}/{start.name}")
        lxc("start", name)
        pid_file.write_text(str(json.loads(lxc("query", f"/1.0/instances/{name}/state"))["pid"]))
        running = Container(name, port, file, f"{INSIDE}/{file.name}", pid_file)
        wait_until(running.answers)
        yield running
    finally:
        lxc("delete", "--force", name, check=False)


def lxc(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["lxc", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if check and done.returncode != 0:
        raise RuntimeError(f"lxc {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _write_image(image: Path) -> None:
    with tempfile.TemporaryDirectory() as name, tarfile.open(image, "w") as archive:
        folder = Path(name)
        (folder / "metadata.yaml").write_text(_METADATA)
        root = folder / "rootfs"
        for inside in _DIRECTORIES:
            (root / inside).mkdir(parents=True)
        for link in _LINKS:
            (root / link).symlink_to(f"usr/{link}")
        for table in ("passwd", "group"):
            (root / "etc" / table).write_text(Path("/etc", table).read_text())
        archive.add(folder, ".")
