"""Settings of a server: read, changed as a transaction that rolls itself back, undone byte for byte."""
