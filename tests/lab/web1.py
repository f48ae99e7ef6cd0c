"""web1: Apache with prefork, a proxy for /img/ from origin1 and /shop/ from app1; available with a2enmod: worker,
event, PHP, mod_jk, two caches.

a2dismod mpm_prefork; a2enmod mpm_event; service apache2 restart
a2enmod php                                 /page.php (needs prefork)
a2enmod jk                                  /shop/ from app1 by AJP instead of HTTP
a2enmod cache_disk                          a cache on a disk in front of /img/
service memcached start; a2enmod cache_socache  a cache in memory
"""

from dataclasses import replace

from tests.data import data_of
from tests.lab.apache import JK_FILES, apache
from tests.lab.services import DOCUMENTS, SMALL, File, stop_all

DATA = data_of(__file__)

ATIME_MOUNT = f"{DOCUMENTS}/atime"
ATIME_FILE = f"{ATIME_MOUNT}/small.txt"
CACHE_LOG = "/var/log/apache2/cache.log"
CACHE_MOUNT = "/var/cache/apache2/mod_cache_disk"

# About 42 kB, generated per request; the length varies.
PAGE = DATA["page"]

PROXY_FILES = (
    File(
        "/etc/apache2/mods-available/proxy_http.conf",
        """\
ProxyPass "/img/" "http://origin1/img/"
<IfModule !jk_module>
ProxyPass "/shop/" "http://app1:8080/shop/"
</IfModule>
""",
    ),
    # Debian's combined format with the duration and the cache status.
    File(
        "/etc/apache2/conf-enabled/access-log.conf",
        'LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\" %D %{cache-status}e" combined\n',
    ),
    # Cache status of a response: in a header, and one line per request in a separate log.
    File(
        "/etc/apache2/mods-available/cache.conf",
        f"""\
CacheHeader on
CacheMaxExpire 86400
GlobalLog {CACHE_LOG} "%{{cache-status}}e %U" env=cache-status
""",
    ),
    File(
        "/etc/apache2/mods-available/cache_disk.conf",
        f"""\
CacheRoot {CACHE_MOUNT}
CacheDirLevels 2
CacheDirLength 1
CacheMaxFileSize 16000000
CacheEnable disk /img/
""",
    ),
    # Apache's shared memory stores nothing above about 1 MB; memcached does.
    File(
        "/etc/apache2/mods-available/cache_socache.load",
        """\
# Depends: cache socache_memcache
LoadModule cache_socache_module /usr/lib/apache2/modules/mod_cache_socache.so
""",
    ),
    File(
        "/etc/apache2/mods-available/cache_socache.conf",
        """\
CacheSocache memcache:127.0.0.1:11211
CacheSocacheMaxSize 16000000
CacheEnable socache /img/
""",
    ),
    File("/etc/memcached.conf", "-d\n-m 256\n-I 16m\n-l 127.0.0.1\n-p 11211\n-u memcache\n"),
)

_plain = apache(
    "prefork", ("proxy", "proxy_http"), files=(File(f"{DOCUMENTS}/page.php", PAGE), *JK_FILES, *PROXY_FILES)
)
APACHE = replace(
    _plain,
    prepare=(
        *_plain.prepare,
        # One name for PHP's module, independent of its version.
        "cd /etc/apache2/mods-available && for part in load conf; do ln -sf php[0-9]*.$part php.$part; done",
        f"printf %s '{SMALL}' >{ATIME_FILE}",
        f"chown www-data:www-data {CACHE_MOUNT}",
        stop_all("memcached"),
    ),
)
