"""Process 1 of a lab host: builds the host's root, network and servers, then reaps orphans until it is killed.

Started by the keeper in new mount, network, PID, UTS and IPC namespaces. It says `{"state": "new"}` on stdout, takes
its orders as one JSON line on stdin, and says `ready`, or `failed` with the reason. All it needs is loaded before the
machine's root is left, so the interpreter need not be visible in the host.
"""

import ctypes
import encodings.idna  # noqa: F401  what socket loads when it is first given a name or address
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

START_DEADLINE = 300.0  # seconds that a server may take to accept connections
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MNT_DETACH = 1, 2, 4, 8, 4096, 2
SERVERS = "/run/lab-servers"  # a process that writes its number there is in the cgroup of the host's servers
# Found before Debian's own: as a service manager does, it starts servers in their cgroup, not in that of a login.
SERVICE = f'#!/bin/sh\necho $$ >{SERVERS}\nexec /usr/sbin/service "$@"\n'
DISKS = "/var/tmp"  # where this machine keeps files on a disk
FILLED = 1_600_000_000  # when made-up files were last written: long ago, as caches like it (s since 1970)
# Trees that some machines keep on filesystems of their own, which an overlay over / does not reach.
SYSTEM_TREES = ("/usr", "/var", "/etc", "/opt", "/srv")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2) itself: mount(8) keeps notes in /run, which at that point is still the machine's."""
    arguments = (source.encode(), bytes(target), kind.encode(), ctypes.c_ulong(flags), options.encode())
    if _libc.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"mounting {kind} on {target}: {os.strerror(ctypes.get_errno())}")


def overlay(label: str, lower: str, stage: Path, name: str, target: Path) -> None:
    """Mounts `lower` on `target`, copy-on-write: what the host writes stays in `stage`."""
    upper, work = stage / f"{name}.upper", stage / f"{name}.work"
    upper.mkdir()
    work.mkdir()
    mount(label, target, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}")


def build_root(stage: Path, label: str) -> Path:
    """Makes a copy-on-write root out of the machine's, and returns where it is.

    `stage` is an empty directory. All that is written goes to memory, into mounts that only this namespace has, so the
    kernel drops it with the host's last process.
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
    for directory, mode in (("run", "755"), ("tmp", "1777"), ("root", "700"), ("var/log", "755")):
        mount(label, root / directory, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode}")
    (root / "run/lock").mkdir()
    (root / "run/lock").chmod(0o1777)
    return root


def separate_servers(root: Path, cgroup: str | None) -> None:
    """Makes SERVERS the list of processes `cgroup` (None: a file that nobody reads), and `service` enter it."""
    group = root / SERVERS.lstrip("/")
    group.touch()
    if cgroup:
        mount(cgroup, group, "none", MS_BIND)
    service = root / "usr/local/sbin/service"
    service.write_text(SERVICE)
    service.chmod(0o755)


def mount_disk(root: Path, label: str, disk: dict[str, Any]) -> None:
    """Mounts an ext4 file system of its own on a path of the host, from an image on this machine's disk.

    The image has no name by the time this returns: the kernel drops it, and the loop device, with the mount.
    """
    target = root / disk["path"].lstrip("/")
    target.mkdir(parents=True, exist_ok=True)
    handle, image = tempfile.mkstemp(prefix=f"{label}-", dir=DISKS)
    try:
        os.truncate(handle, disk["megabytes"] << 20)
        # All of it is laid out now: else the kernel would do so later, in the midst of what is measured.
        layout = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        execute(["mkfs.ext4", "-q", "-F", "-i", "8192", "-J", "size=4", "-E", layout, image])
        execute(["mount", "-n", "-t", "ext4", "-o", "loop,relatime", image, str(target)])
    finally:
        Path(image).unlink()
        os.close(handle)
    (target / "lost+found").rmdir()
    # mount(8) on the host wants to see the device.
    number = target.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").readlink().name
    os.mknod(root / "dev" / name, 0o660 | stat.S_IFBLK, number)


def execute(words: list[str]) -> None:
    """Runs a command of this machine; raises RuntimeError with what it said when it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} failed with status {done.returncode}: {done.stderr.strip()[-400:]}")


def enter_root(root: Path) -> None:
    """Makes `root` the root of every process in this mount namespace, and lets go of the machine's."""
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True, capture_output=True, text=True)
    if _libc.umount2(b".", MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "leaving the machine's root")
    os.chdir("/")


def separate_trees() -> list[str]:
    """Mount points at or under SYSTEM_TREES, outer ones first."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    points = {row.split()[4] for row in rows}
    return sorted(point for point in points if point.startswith(SYSTEM_TREES) and Path(point).is_dir())


def build_devices(dev: Path) -> None:
    """The few devices that servers need, terminals of the host's own, and shared memory."""
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
    """Runs a shell command; its output goes to `log`, whose end is the reason when it fails."""
    with log.open("a") as out:
        status = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    if status != 0:
        raise RuntimeError(f"{command!r} failed with status {status}: {log.read_text().strip()[-400:]}")


def name_host(orders: dict[str, Any]) -> None:
    """Gives the host its name, and the names and addresses of all hosts of the lab."""
    socket.sethostname(orders["name"])
    Path("/etc/hostname").write_text(f"{orders['name']}\n")
    names = "".join(f"{address} {name}\n" for name, address in orders["names"].items())
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n{names}")
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text("# A host of the lab reaches none but those of the lab.\n")


def made_up(path: str, size: int) -> bytes:
    """The bytes of a made-up file: none like another's, the same each time, framed as a JPEG is."""
    return b"\xff\xd8\xff\xe0" + random.Random(path).randbytes(size - 6) + b"\xff\xd9"


def write_files(service: dict[str, Any]) -> None:
    """Writes a server's files, those of given content and those that are made up."""
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
    """Writes a server's files, starts it and waits until it accepts connections."""
    log = Path(f"/var/log/lab-{service['name']}.log")
    write_files(service)
    enter = "" if service["name"] == "sshd" else f"echo $$ >{SERVERS}; "
    for command in (*service["prepare"], service["start"]):
        run(enter + command, log)
    try:
        wait_until_it_answers(address, service["port"])
    except OSError as error:
        reason = f"{error}; {log.read_text().strip()[-400:]}"
        raise RuntimeError(f"{service['name']} does not answer on {address}:{service['port']}: {reason}") from error


def wait_until_it_answers(address: str, port: int) -> None:
    """Returns when something accepts connections there; raises the last OSError when nothing does in time."""
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
    """The whole host, in the order in which each part needs the one before."""
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
        wait_until_it_answers(address, 80)
    for service in orders["services"]:
        start(service, orders["address"])


def reap_forever() -> NoReturn:
    """What process 1 is for: takes in orphans and lets go of them when they end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


def say(**words: str) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    os.umask(0o022)
    Path("/proc/self/comm").write_text("init")
    say(state="new")
    orders = sys.stdin.readline()
    if not orders:
        return
    try:
        build_host(json.loads(orders))
    except Exception as error:
        detail = getattr(error, "stderr", None) or error
        say(state="failed", reason=f"{type(error).__name__}: {detail}")
        sys.exit(1)
    say(state="ready")
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    reap_forever()


if __name__ == "__main__":
    main()
