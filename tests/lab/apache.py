"""Apache on the lab's hosts: Debian's configuration with the modules of the host."""

from tests.data import data_of
from tests.lab.services import DOCUMENTS, HELLO, PREFORK_CONF, SMALL, TINY, File, Fill, Service, stop_all

DATA = data_of(__file__)

PID_FILE = "/run/apache2/apache2.pid"

# Modules that Debian enables, without the MPM.
DEBIAN_MODULES = (
    "access_compat alias auth_basic authn_core authn_file authz_core authz_host authz_user autoindex deflate dir env"
    " filter mime negotiation reqtimeout setenvif status"
)

# Small spare-server limits and short-lived workers: the start of the tuning.
UNTUNED_PREFORK = DATA["untuned_prefork"]

# Debian's init script waits for a stop and a start in steps of 1 s. Steps of 0.1 s make a restart a second shorter.
SHORT_STEPS = """sed -i -e 's/sleep 1$/sleep 0.1/' -e 's/"20"/"200"/' -e "s/'60'/'600'/" /etc/init.d/apache2"""

# Connects Apache to the Tomcat of app1, over AJP.
JK_FILES = (
    File(
        "/etc/libapache2-mod-jk/workers.properties",
        "worker.list=app1\nworker.app1.type=ajp13\nworker.app1.host=app1\nworker.app1.port=8009\n",
    ),
    File(
        "/etc/apache2/mods-available/jk.conf",
        """\
JkWorkersFile /etc/libapache2-mod-jk/workers.properties
JkLogFile /var/log/apache2/mod_jk.log
JkLogLevel error
JkShmFile /run/apache2/jk-runtime-status
JkMountCopy All
JkMount /shop/* app1
""",
    ),
)


def apache(
    mpm: str, modules: tuple[str, ...] = (), files: tuple[File, ...] = (), fills: tuple[Fill, ...] = ()
) -> Service:
    """Return an Apache with an MPM and additional modules, without the sites and modules of this machine."""
    enabled = " ".join((DEBIAN_MODULES, f"mpm_{mpm}", *modules))
    return Service(
        name="apache2",
        port=80,
        files=(
            File(PREFORK_CONF, UNTUNED_PREFORK),
            File("/etc/apache2/ports.conf", "Listen 80\n"),
            File("/etc/apache2/conf-enabled/servername.conf", "ServerName localhost\n"),
            File(f"{DOCUMENTS}/hello.html", HELLO),
            File(f"{DOCUMENTS}/tiny.txt", TINY),
            File(f"{DOCUMENTS}/small.txt", SMALL),
            *files,
        ),
        fills=fills,
        prepare=(
            "rm -f /etc/apache2/sites-enabled/* /etc/apache2/mods-enabled/*",
            "ln -s ../sites-available/000-default.conf /etc/apache2/sites-enabled/",
            f"cd /etc/apache2/mods-enabled && for module in {enabled}; do for part in load conf; do"
            " [ ! -e ../mods-available/$module.$part ] || ln -s ../mods-available/$module.$part .; done; done",
            "install -d -o root -g adm -m 750 /var/log/apache2",
            SHORT_STEPS,
        ),
        # Wait for the PID file: it appears after the port is open, and reload and stop need it.
        start=f"apachectl start && until [ -s {PID_FILE} ]; do pgrep -x apache2 >/dev/null || exit 1; sleep 0.02; done",
        stop=f"{stop_all('apache2')}; rm -f {PID_FILE}",
    )
