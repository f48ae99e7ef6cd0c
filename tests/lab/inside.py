"""Process 1 of a lab host: builds the host's root, network and servers, then reaps orphans until it is killed.

Started by the keeper in new mount, network, PID, UTS and IPC namespaces. It prints `{"state": "new"}`, reads its orders
as one JSON line from stdin, and prints the state `ready`, or `failed` with the reason. It loads all modules before it
leaves the machine's root: the interpreter need not exist in the host.
"""

import ctypes
import encodings.idna  # noqa: F401  loaded by socket with the first name or address
import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

START_DEADLINE = 300.0  # s until a server accepts connections
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MNT_DETACH = 1, 2, 4, 8, 4096, 2
SERVERS = "/run/lab-servers"  # a process that writes its PID here enters the cgroup of the host's servers
# Earlier in PATH than Debian's `service`: starts servers in their cgroup, not in that of a login.
SERVICE = f'#!/bin/sh\necho $$ >{SERVERS}\nexec /usr/sbin/service "$@"\n'
DISKS = "/var/tmp"  # a directory on a disk of this machine
FILLED = 1_600_000_000  # mtime of generated files (s since 1970): old enough for caches
# Trees that are separate file systems on some machines: an overlay over / does not include them.
SYSTEM_TREES = ("/usr", "/var", "/etc", "/opt", "/srv")
# Directories that are empty on a new host, with their modes.
EMPTY = {"run": "755", "tmp": "1777", "root": "700", "var/log": "755"}
REPOSITORY = Path(__file__).parents[2]
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Call mount(2): mount(8) would write into /run, which is still the machine's at this point."""
    arguments = (source.encode(), bytes(target), kind.encode(), ctypes.c_ulong(flags), options.encode())
    if _libc.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"mounting {kind} on {target}: {os.strerror(ctypes.get_errno())}")


def overlay(label: str, lower: str, stage: Path, name: str, target: Path) -> None:
    """Mount `lower` on `target`, copy-on-write: writes of the host stay in `stage`."""
    upper, work = stage / f"{name}.upper", stage / f"{name}.work"
    upper.mkdir()
    work.mkdir()
    mount(label, target, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}")


def build_root(stage: Path, label: str) -> Path:
    """Create a copy-on-write root from the machine's root, and return its path.

    `stage` is an empty directory. All writes go to memory, into mounts of this namespace only: the kernel drops them
    with the host's last process.
    """
    mount(label, stage, "tmpfs")
    root = stage / "root"
    root.mkdir()
    overlay(label, "/", stage, "top", root)
    for number, tree in enumerate(separate_trees()):
        overlay(label, tree, stage, f"tree{number}", root / tree.lstrip("/"))
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", root / "sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    build_devices(root / "dev")
    for directory, mode in EMPTY.items():
        mount(label, root / directory, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode}")
    if any(REPOSITORY.is_relative_to(f"/{directory}") for directory in EMPTY):
        # Hosts that generate load import this cockpit.
        repository = root / str(REPOSITORY).lstrip("/")
        repository.mkdir(parents=True)
        overlay(label, str(REPOSITORY), stage, "repository", repository)
    (root / "run/lock").mkdir()
    (root / "run/lock").chmod(0o1777)
    return root


def separate_servers(root: Path, cgroup: str | None) -> None:
    """Bind SERVERS to the process list `cgroup` (None: an unused file), and let `service` enter it."""
    group = root / SERVERS.lstrip("/")
    group.touch()
    if cgroup:
        mount(cgroup, group, "none", MS_BIND)
    service = root / "usr/local/sbin/service"
    service.write_text(SERVICE)
    service.chmod(0o755)


def mount_disk(root: Path, label: str, disk: dict[str, Any]) -> None:
    """Mount a new ext4 file system on a path of the host, from an image on this machine's disk.

    The image is unlinked on return: the kernel drops it and the loop device with the mount.
    """
    target = root / disk["path"].lstrip("/")
    target.mkdir(parents=True, exist_ok=True)
    handle, image = tempfile.mkstemp(prefix=f"{label}-", dir=DISKS)
    try:
        os.truncate(handle, disk["megabytes"] << 20)
        # Initialize everything now: otherwise the kernel would do so later, during measurements.
        layout = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        execute(["mkfs.ext4", "-q", "-F", "-i", "8192", "-J", "size=4", "-E", layout, image])
        execute(["mount", "-n", "-t", "ext4", "-o", "loop,relatime", image, str(target)])
    finally:
        Path(image).unlink()
        os.close(handle)
    (target / "lost+found").rmdir()
    # mount(8) on the host needs the device node.
    number = target.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").readlink().name
    os.mknod(root / "dev" / name, 0o660 | stat.S_IFBLK, number)


def execute(command: list[str]) -> None:
    """Run a command of this machine. Raises RuntimeError with its stderr if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed with status {done.returncode}: {done.stderr.strip()[-400:]}")


def enter_root(root: Path) -> None:
    """Make `root` the root of all processes in this mount namespace, and detach the machine's root."""
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True, capture_output=True, text=True)
    if _libc.umount2(b".", MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "leaving the machine's root")
    os.chdir("/")


def separate_trees() -> list[str]:
    """Return the mount points at or below SYSTEM_TREES, outer ones first."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    points = {row.split()[4] for row in rows}
    return sorted(point for point in points if point.startswith(SYSTEM_TREES) and Path(point).is_dir())


def build_devices(dev: Path) -> None:
    """Create the few devices that servers need, private terminals, and shared memory."""
    mount("dev", dev, "tmpfs", MS_NOSUID, "mode=755")
    for name in DEVICES:
        (dev / name).touch()
        mount(f"/dev/{name}", dev / name, "none", MS_BIND)
    for name, target in DEVICE_LINKS.items():
        (dev / name).symlink_to(target)
    (dev / "pts").mkdir()
    mount("devpts", dev / "pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5")
    (dev / "shm").mkdir()
    mount("shm", dev / "shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def run(command: str, log: Path) -> None:
    """Run a shell command with its output in `log`. Raises RuntimeError with the end of `log` if it fails."""
    with log.open("a") as out:
        status = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    if status != 0:
        raise RuntimeError(f"{command!r} failed with status {status}: {log.read_text().strip()[-400:]}")


def name_host(orders: dict[str, Any]) -> None:
    """Set the host's name, and write the names and addresses of all hosts of the lab."""
    socket.sethostname(orders["name"])
    Path("/etc/hostname").write_text(f"{orders['name']}\n")
    names = "".join(f"{address} {name}\n" for name, address in orders["names"].items())
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n{names}")
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text("# A host of the lab reaches only hosts of the lab.\n")


def made_up(path: str, size: int) -> bytes:
    """Return the bytes of a generated file: unique for its path, reproducible, framed as a JPEG."""
    return b"\xff\xd8\xff\xe0" + random.Random(path).randbytes(size - 6) + b"\xff\xd9"


def write_files(service: dict[str, Any]) -> None:
    """Write a server's files: those with content, and generated files."""
    for file in service["files"]:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(file["mode"])
        path.write_text(file["content"])
        path.chmod(file["mode"])
    for fill in service["fills"]:
        Path(fill["path"]).parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, fill["count"] + 1):
            name = fill["path"].format(number)
            Path(name).write_bytes(made_up(name, fill["size"]))
            os.utime(name, (FILLED, FILLED))


def start(service: dict[str, Any], address: str) -> None:
    """Write a server's files, start it and wait until it accepts connections."""
    log = Path(f"/var/log/lab-{service['name']}.log")
    write_files(service)
    enter = "" if service["name"] == "sshd" else f"echo $$ >{SERVERS}; "
    for command in (*service["prepare"], service["start"]):
        run(enter + command, log)
    try:
        wait_until_reachable(address, service["port"])
    except OSError as error:
        reason = f"{error}; {log.read_text().strip()[-400:]}"
        raise RuntimeError(f"{service['name']} does not answer on {address}:{service['port']}: {reason}") from error


def wait_until_reachable(address: str, port: int) -> None:
    """Wait until the port accepts connections. Raises the last OSError after START_DEADLINE."""
    deadline = time.monotonic() + START_DEADLINE
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def build_host(orders: dict[str, Any]) -> None:
    """Build the whole host: each step needs the steps before it."""
    root = build_root(Path(orders["stage"]), orders["label"])
    for disk in orders["disks"]:
        mount_disk(root, orders["label"], disk)
    separate_servers(root, orders["servers"])
    enter_root(root)
    name_host(orders)
    log = Path("/var/log/lab-network.log")
    run("ip link set lo up", log)
    run(f"ip address add {orders['address']}/{orders['prefix']} dev eth0 && ip link set eth0 up", log)
    for address in orders["after"]:
        wait_until_reachable(address, 80)
    for service in orders["services"]:
        start(service, orders["address"])


def reap_forever() -> NoReturn:
    """Reap orphans forever, as process 1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


def report(**fields: str) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    os.umask(0o022)
    Path("/proc/self/comm").write_text("init")
    report(state="new")
    orders = sys.stdin.readline()
    if not orders:
        return
    try:
        build_host(json.loads(orders))
    except Exception as error:
        detail = getattr(error, "stderr", None) or error
        report(state="failed", reason=f"{type(error).__name__}: {detail}")
        sys.exit(1)
    report(state="ready")
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    reap_forever()


if __name__ == "__main__":
    main()
