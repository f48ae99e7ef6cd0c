"""Files of `KEY=value` lines, as read by many servers and Debian's service scripts."""

from cockpit.servers.keyvalue.editor import KeyValueGrammar

GRAMMAR = KeyValueGrammar()
