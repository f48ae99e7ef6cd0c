"""CPU profiles of hosts by perf, folded on the host."""
