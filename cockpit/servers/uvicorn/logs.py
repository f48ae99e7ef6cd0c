"""uvicorn's access log: `INFO:     127.0.0.1:52846 - "GET /x HTTP/1.1" 200 OK`."""

import re

from cockpit.servers.access_log import PartialLog

# The client is empty on a Unix socket.
PARTIAL_LOG = PartialLog(
    re.compile(rb'INFO: +\S* - "[A-Z]+ \S+ HTTP/[\d.]+" \d{3}\b'),
    "uvicorn logs no times",
    "replay the log of the proxy in front of it",
)
