"""The error of the lab."""


class LabError(Exception):
    """A failed operation of the lab; the message is one line with the reason."""
