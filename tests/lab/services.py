"""The servers that lab hosts run, as data: what is written, what is run before, how it starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file on a host. Directories above it are made."""

    path: str
    content: str
    mode: int = 0o644


@dataclass(frozen=True)
class Service:
    """A server of a host.

    `prepare` are shell commands run once, after the files are written. `start` returns when the server runs by itself;
    it is ready when `port` accepts connections on the host's address. `stop` returns when no process of it is left.
    """

    name: str
    port: int
    start: str
    stop: str
    files: tuple[File, ...] = ()
    prepare: tuple[str, ...] = ()


# The 92 bytes that the load asks for.
HELLO = "<!DOCTYPE html><html><head><title>hello</title></head><body>Hello from Apache</body></html>\n"
PREFORK_CONF = "/etc/apache2/mods-available/mpm_prefork.conf"

# Small spare-server limits and short-lived workers: the situation that tuning starts from.
UNTUNED_PREFORK = """\
# prefork MPM
# StartServers: number of server processes to start
# MinSpareServers: minimum number of server processes which are kept spare
# MaxSpareServers: maximum number of server processes which are kept spare
# MaxRequestWorkers: maximum number of server processes allowed to start
# MaxConnectionsPerChild: maximum number of requests a server process serves

<IfModule mpm_prefork_module>
\tStartServers            5
\tMinSpareServers         5
\tMaxSpareServers         10
\tMaxRequestWorkers       150
\tMaxConnectionsPerChild  100
</IfModule>
"""

# Debian's own configuration, with prefork for its MPM and none of the sites this machine may serve.
APACHE = Service(
    name="apache2",
    port=80,
    files=(
        File(PREFORK_CONF, UNTUNED_PREFORK),
        File("/etc/apache2/ports.conf", "Listen 80\n"),
        File("/etc/apache2/conf-enabled/servername.conf", "ServerName localhost\n"),
        File("/var/www/html/hello.html", HELLO),
    ),
    prepare=(
        "rm -f /etc/apache2/sites-enabled/* /etc/apache2/mods-enabled/mpm_*",
        "ln -s ../sites-available/000-default.conf /etc/apache2/sites-enabled/",
        "ln -s ../mods-available/mpm_prefork.conf ../mods-available/mpm_prefork.load /etc/apache2/mods-enabled/",
        "install -d -o root -g adm -m 750 /var/log/apache2",
    ),
    start="apachectl start",
    stop="kill $(cat /run/apache2/apache2.pid); while pgrep -x apache2; do sleep 0.02; done",
)


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
