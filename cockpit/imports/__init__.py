"""Results of other load generators, and samples of sysstat, as recordings."""
