"""Status pages of servers: requested from the host itself, parsed by kind."""
