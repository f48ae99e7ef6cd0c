"""lighttpd beside web1's Apache: Debian's configuration with another port and the status page."""

from tests.lab.services import Service, stop_all

PORT = 8081
CONFIG = "/etc/lighttpd/lighttpd.conf"

LIGHTTPD = Service(
    name="lighttpd",
    port=PORT,
    prepare=(
        f"sed -i 's/^server.port .*/server.port = {PORT}/' {CONFIG}",
        "ln -sf ../conf-available/10-status.conf /etc/lighttpd/conf-enabled/",
        "echo 'status.status-url = \"/server-status\"' >/etc/lighttpd/conf-enabled/11-status-url.conf",
        "install -d -o www-data -g www-data /run/lighttpd /var/log/lighttpd",
    ),
    start="service lighttpd start",
    stop=stop_all("lighttpd"),
)
