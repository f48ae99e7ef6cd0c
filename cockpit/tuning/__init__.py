"""Settings of a server: read, changed as a transaction that puts itself back, taken back byte for byte."""
