"""Pages on which servers tell of themselves: fetched from the host itself, parsed by kind."""
