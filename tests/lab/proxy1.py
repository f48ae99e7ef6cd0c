"""proxy1: squid on port 80 and nginx on 8080, each in front of origin1.

squid has a ufs store; rock is available. nginx has a cache on a disk and one in memory, both off.

To change squid's store: `service squid stop`, edit the cache_dir line, empty the store, `squid -z --foreground`,
`service squid start`.
"""

from tests.lab.services import File, Service, stop_all

CONFIG = "/etc/squid/squid.conf"
STORE_MOUNT = "/var/spool/squid"
NGINX_CONFIG = "/etc/nginx/nginx.conf"
NGINX_MOUNT = "/var/cache/nginx"

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

NGINX_CONF = f"""\
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                     '"$http_referer" "$http_user_agent" $request_time $upstream_cache_status';
    access_log /var/log/nginx/access.log timed;
    proxy_cache_path {NGINX_MOUNT}/disk levels=1:2 keys_zone=disk:16m max_size=100m use_temp_path=off;
    proxy_cache_path /run/nginx/cache levels=1:2 keys_zone=tmpfs:16m max_size=100m use_temp_path=off;
    upstream origin {{ server origin1; keepalive 16; }}
    server {{
        listen 8080;
        location = /stub_status {{ stub_status; allow 127.0.0.1; deny all; }}
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_cache off;
        }}
    }}
}}
"""

NGINX = Service(
    name="nginx",
    port=8080,
    files=(File(NGINX_CONFIG, NGINX_CONF),),
    prepare=(
        # nginx does not start if it cannot resolve the origin.
        "getent hosts origin1 >/dev/null || echo 127.0.0.1 origin1 >>/etc/hosts",
        "install -d /run/nginx /var/log/nginx",
        f"chown www-data:www-data {NGINX_MOUNT}",
    ),
    start="nginx",
    stop=stop_all("nginx"),
)
