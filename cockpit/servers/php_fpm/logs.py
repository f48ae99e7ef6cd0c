"""PHP-FPM's access log: `127.0.0.1 -  23/Nov/2026:01:10:00 +0000 "GET /index.php" 200`.

https://www.php.net/manual/en/install.fpm.configuration.php#access-format
"""

import re

from cockpit.servers.access_log import PartialLog

# Optionally followed by the fields in the commented format of the packaged pool.
PARTIAL_LOG = PartialLog(
    re.compile(rb'\S+ - \S* \d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [+-]\d{4} "[A-Z]+ [^\s"]+" \d{3}(?: |$)'),
    "PHP-FPM logs scripts instead of URLs",
    "replay the log of the web server in front of it",
)
