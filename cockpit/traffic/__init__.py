"""Traffic: the requests of a server's users, counted from its access log on the host."""
