"""Files of `KEY=value` lines, which many servers and Debian's service scripts read."""

from cockpit.servers.keyvalue.editor import KeyValueGrammar

GRAMMAR = KeyValueGrammar()
