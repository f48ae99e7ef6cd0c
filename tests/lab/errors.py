"""The lab's own error."""


class LabError(Exception):
    """The lab cannot do what was asked; the message says why in one line."""
