"""proxy1: squid in front of origin1, its store of the ufs kind; rock is at hand.

To change it: `service squid stop`, the cache_dir line, an empty store, `squid -z --foreground`, `service squid start`.
"""

from tests.lab.services import File, Service

CONFIG = "/etc/squid/squid.conf"
STORE_MOUNT = "/var/spool/squid"

SQUID_CONF = f"""\
http_port 80 accel defaultsite=origin1 no-vhost
http_port 127.0.0.1:3128
cache_peer origin1 parent 80 0 no-query no-digest originserver
visible_hostname proxy1
http_access allow localhost manager
http_access deny manager
http_access allow all
cache_mem 8 MB
maximum_object_size 32 MB
cache_dir ufs {STORE_MOUNT} 300 16 256
access_log stdio:/var/log/squid/access.log
cache_log /var/log/squid/cache.log
coredump_dir {STORE_MOUNT}
pinger_enable off
shutdown_lifetime 0 seconds
"""

SQUID = Service(
    name="squid",
    port=80,
    files=(File(CONFIG, SQUID_CONF),),
    prepare=(
        "install -d -o proxy -g proxy /var/log/squid /run/squid",
        f"rm -rf {STORE_MOUNT}/* && chown proxy:proxy {STORE_MOUNT}",
        "squid -z --foreground",
    ),
    start="squid",
    stop="kill $(cat /run/squid.pid); while pgrep -x squid; do sleep 0.02; done",
)
