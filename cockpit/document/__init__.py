"""A report as data, and its writers: text, Markdown, HTML. Pure."""
