"""Load from other machines: load workers run there; Dask places them and transports their messages."""
