"""HTTP/2 (RFC 9113) from the load engine: connections, their streams, and request and response headers (RFC 7541)."""
