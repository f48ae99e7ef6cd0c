"""Load from other machines: the load workers run there, Dask places them and carries their messages."""
