"""CPU profiles: merged stacks of segments, and differences between them."""
