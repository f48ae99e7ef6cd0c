"""Status pages of servers: requested on the host itself, parsed by kind of server."""
