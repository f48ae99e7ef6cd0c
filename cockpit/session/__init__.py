"""A session: events from a source, recorded, folded into state, offered to readers."""
