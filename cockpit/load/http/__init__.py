"""HTTP/1.1: connections, requests, responses."""
