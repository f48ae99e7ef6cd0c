"""app1: Tomcat with a small shop that answers SOAP requests from three database queries, and Apache in front of it.

Port 8080 is Tomcat, port 80 is Apache with mod_jk on the same host; web1 reaches the shop through mod_jk, too. The shop
is in webapp/, its database is HSQLDB in Tomcat's memory. `service tomcat10 restart` activates JAVA_OPTS.
"""

from pathlib import Path

from tests.data import data_of
from tests.lab.apache import JK_FILES, apache
from tests.lab.services import HELLO, File, Service

DATA = data_of(__file__)

WEBAPP = Path(__file__).with_name("webapp")
# The requests of profiles/topologies.toml.
REQUESTS = tuple(sorted((WEBAPP.parents[2] / "profiles/requests").glob("*.xml")))
BASE = "/var/lib/tomcat10"
SHOP = f"{BASE}/webapps/shop"
SOURCES = "/usr/src/shop"
OPTIONS = "/etc/default/tomcat10"
# The manager's status page; it answers only requests from the host itself.
STATUS_PATH = "/manager/status"
STATUS_LOGIN = ("lab", "lab")

SERVER = DATA["server"]

# Do not scan all libraries for tag libraries and annotations: there are none.
CONTEXT = DATA["context"]

MANAGER = """\
<Context docBase="/usr/share/tomcat10-admin/manager" privileged="true">
  <Valve className="org.apache.catalina.valves.RemoteAddrValve" allow="127\\.0\\.0\\.1|::1|0:0:0:0:0:0:0:1" />
</Context>
"""

USERS = '<tomcat-users>\n  <user username="{}" password="{}" roles="manager-status" />\n</tomcat-users>\n'

LOGGING = """\
handlers = java.util.logging.ConsoleHandler
.level = INFO
java.util.logging.ConsoleHandler.formatter = org.apache.juli.OneLineFormatter
"""

JAVA_OPTS = """\
# JVM options of Tomcat.
JAVA_OPTS="-server -Xms128m -Xmx128m -Djava.awt.headless=true -Djava.security.egd=file:/dev/urandom"
"""

# Debian's package has only a systemd unit. The start returns when the shop accepts requests.
INIT = DATA["init"]


def _shop() -> tuple[File, ...]:
    """Return the application's files: sources in SOURCES, the rest in Tomcat's webapps."""
    places = {"src": SOURCES, "WEB-INF": f"{SHOP}/WEB-INF", "META-INF": f"{SHOP}/META-INF"}
    return tuple(
        File(f"{place}/{path.relative_to(WEBAPP / part)}", path.read_text())
        for part, place in places.items()
        for path in sorted((WEBAPP / part).rglob("*.*"))
    )


# Tomcat's own compiler for JSPs: a Java runtime is sufficient.
COMPILE = (
    "java -XX:TieredStopAtLevel=1 -cp /usr/share/java/eclipse-jdt-core.jar"
    " org.eclipse.jdt.internal.compiler.batch.Main -17 -proc:none -nowarn"
    f" -cp /usr/share/java/tomcat10-servlet-api.jar -d {SHOP}/WEB-INF/classes {SOURCES}"
)

TOMCAT = Service(
    name="tomcat10",
    port=8080,
    files=(
        File("/etc/tomcat10/server.xml", SERVER),
        File("/etc/tomcat10/context.xml", CONTEXT),
        File("/etc/tomcat10/tomcat-users.xml", USERS.format(*STATUS_LOGIN)),
        File("/etc/tomcat10/logging.properties", LOGGING),
        File("/etc/tomcat10/Catalina/localhost/manager.xml", MANAGER),
        File(OPTIONS, JAVA_OPTS),
        File("/etc/init.d/tomcat10", INIT, 0o755),
        File(f"{BASE}/webapps/ROOT/hello.html", HELLO),
        *_shop(),
    ),
    prepare=(
        "rm -rf /etc/tomcat10/Catalina/localhost/host-manager.xml /var/lib/tomcat10/webapps/ROOT/index.html",
        f"ln -sf /usr/share/java/hsqldb.jar {BASE}/lib/",
        "install -d -o tomcat -g adm -m 2750 /var/log/tomcat10",
        f"[ -d {SHOP}/WEB-INF/classes ] || {COMPILE}",
    ),
    start="/etc/init.d/tomcat10 start",
    stop="/etc/init.d/tomcat10 stop",
)

APACHE = apache("event", modules=("jk",), files=JK_FILES)
