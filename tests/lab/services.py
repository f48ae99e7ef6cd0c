"""The servers that lab hosts run, as data: what is written, what is run before, how it starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file on a host. Directories above it are made."""

    path: str
    content: str
    mode: int = 0o644


@dataclass(frozen=True)
class Fill:
    """Files of made-up bytes (`inside.made_up`), the same on every lab: `count` of them, each of `size` bytes.

    Where `path` holds a `{:05}` or the like, it takes the numbers from 1 on.
    """

    path: str
    size: int
    count: int = 1


@dataclass(frozen=True)
class Service:
    """A server of a host.

    `prepare` are shell commands run after the files are written and before each start of the lab's own; to run them
    again does no harm. `start` returns when the server runs by itself; it is ready when `port` accepts connections on
    the host's address. `stop` returns when no process of it is left.
    """

    name: str
    port: int
    start: str
    stop: str
    files: tuple[File, ...] = ()
    fills: tuple[Fill, ...] = ()
    prepare: tuple[str, ...] = ()


# The 92 bytes that the load asks for.
HELLO = "<!DOCTYPE html><html><head><title>hello</title></head><body>Hello from Apache</body></html>\n"
# The smallest replies: 31 bytes and 44.
TINY = "thirty-one bytes of plain text\n"
SMALL = "forty-four bytes, asked for again and again\n"
DOCUMENTS = "/var/www/html"
PREFORK_CONF = "/etc/apache2/mods-available/mpm_prefork.conf"


def stop_all(name: str) -> str:
    """A shell command that ends all processes of this name. A server that is just starting may miss one signal."""
    return f"while pkill -x {name}; do sleep 0.05; done"


def sshd(host_key: str, authorized_key: str) -> Service:
    """An sshd that lets in one key, as root, and nothing else. Both keys are in OpenSSH's own text format."""
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
        # Without PAM sshd turns locked accounts away, and root's often is: "*" means no password, not locked.
        prepare=("usermod -p '*' root", "install -d -m 755 /run/sshd"),
        start="/usr/sbin/sshd -E /var/log/sshd.log",
        stop="kill $(cat /run/sshd.pid); while pgrep -x sshd; do sleep 0.02; done",
    )
