"""Servers of lab hosts as data: files, preparation, start and stop."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file on a host; its parent directories are created."""

    path: str
    content: str
    mode: int = 0o644


@dataclass(frozen=True)
class Fill:
    """`count` files of `size` pseudorandom bytes (`inside.made_up`), the same in every lab.

    A placeholder in `path`, e.g. `{:05}`, is replaced by the number of the file, from 1.
    """

    path: str
    size: int
    count: int = 1


@dataclass(frozen=True)
class Service:
    """A server of a host.

    `prepare`: idempotent shell commands, run after the files are written and before each start by the lab. `start`
    returns when the server runs in the background; it is ready when `port` accepts connections on the host's address.
    `stop` returns when all its processes have ended.
    """

    name: str
    port: int
    start: str
    stop: str
    files: tuple[File, ...] = ()
    fills: tuple[Fill, ...] = ()
    prepare: tuple[str, ...] = ()


# The page of the load: 92 bytes.
HELLO = "<!DOCTYPE html><html><head><title>hello</title></head><body>Hello from Apache</body></html>\n"
# The smallest responses: 31 and 44 bytes.
TINY = "thirty-one bytes of plain text\n"
SMALL = "forty-four bytes, asked for again and again\n"
DOCUMENTS = "/var/www/html"
PREFORK_CONF = "/etc/apache2/mods-available/mpm_prefork.conf"


def nginx_config(listen: str, server: str, http: str = "access_log off;", *, pid: str, log: str) -> str:
    """Return a configuration of nginx with one server, and settings of the blocks `server` and `http`."""
    return f"""\
user www-data;
worker_processes 1;
pid {pid};
error_log {log};
events {{ worker_connections 64; }}
http {{
    {http}
    server {{
        listen {listen};
        {server}
    }}
}}
"""


def stop_all(name: str) -> str:
    """Return a shell command that ends all processes of this name; a starting server may miss the first signal."""
    return f"while pkill -x {name}; do sleep 0.05; done"


def sshd(host_key: str, authorized_key: str) -> Service:
    """Return an sshd that accepts one key, as root only. Both keys are in OpenSSH's text format."""
    config = """\
        HostKey /etc/ssh/lab_host_key
        AuthorizedKeysFile /etc/ssh/lab_authorized_keys
        PermitRootLogin prohibit-password
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        UsePAM no
        PrintMotd no
        AcceptEnv LANG LC_*
        Subsystem sftp /usr/lib/openssh/sftp-server
    """
    return Service(
        name="sshd",
        port=22,
        files=(
            File("/etc/ssh/sshd_config", "".join(f"{line.strip()}\n" for line in config.strip().splitlines())),
            File("/etc/ssh/lab_host_key", host_key, 0o600),
            File("/etc/ssh/lab_authorized_keys", authorized_key, 0o600),
        ),
        # Without PAM sshd refuses locked accounts, and root is often locked: "*" means no password, not locked.
        prepare=("usermod -p '*' root", "install -d -m 755 /run/sshd"),
        start="/usr/sbin/sshd -E /var/log/sshd.log",
        stop="kill $(cat /run/sshd.pid); while pgrep -x sshd; do sleep 0.02; done",
    )
