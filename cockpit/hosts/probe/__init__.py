"""The probe: its program on the host, and what it prints, parsed."""
