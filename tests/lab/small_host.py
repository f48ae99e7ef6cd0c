"""A small host inside a lab host: only dropbear and busybox in its root."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.lab import Host

ROOT = "/srv/small"
PORT = 2222

BUILD = f"""
set -e
mkdir -p {ROOT}/bin {ROOT}/etc/dropbear {ROOT}/root/.ssh {ROOT}/proc {ROOT}/sys {ROOT}/dev {ROOT}/run {ROOT}/tmp
for program in busybox dropbear; do
    path=$(command -v $program)
    cp "$path" {ROOT}/bin/
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "{ROOT}$(dirname "$library")"
        cp -L "$library" "{ROOT}$library"
    done
done
for applet in $(busybox --list); do ln -sf busybox {ROOT}/bin/$applet; done
mount --bind /proc {ROOT}/proc
mount --rbind /dev {ROOT}/dev
mount -t sysfs sys {ROOT}/sys
echo 'root:*:0:0:root:/root:/bin/sh' >{ROOT}/etc/passwd
echo 'root:*:0:' >{ROOT}/etc/group
echo /bin/sh >{ROOT}/etc/shells
cp /etc/ssh/lab_authorized_keys {ROOT}/root/.ssh/authorized_keys
chmod -R go= {ROOT}/root
dropbearkey -t ed25519 -f {ROOT}/etc/dropbear/key >/dev/null 2>&1
chroot {ROOT} /bin/dropbear -r /etc/dropbear/key -p {PORT} -P /run/dropbear.pid
dropbearkey -y -f {ROOT}/etc/dropbear/key | grep ^ssh-
"""

REMOVE = f"""
pkill -KILL -x dropbear
umount -l {ROOT}/proc {ROOT}/dev {ROOT}/sys
rm -rf --one-file-system {ROOT}
"""


@contextmanager
def small_host(host: Host, directory: Path) -> Iterator[Path]:
    """Build the small host on `host` and run dropbear; yield an ssh_config with the alias `small`."""
    try:
        public = " ".join(host.run(BUILD).stdout.split()[:2])
        known_hosts = directory / "known_hosts"
        known_hosts.write_text(f"[{host.address}]:{PORT} {public}\n")
        config = directory / "ssh_config"
        config.write_text(
            f"Host small\n  HostName {host.address}\n  Port {PORT}\n  User root\n"
            f"  IdentityFile {host.ssh_config.parent / 'key'}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
        )
        yield config
    finally:
        host.run(REMOVE, check=False)
