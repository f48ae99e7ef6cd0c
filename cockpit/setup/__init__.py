"""Set-up: the doctor, and drafts of profiles."""
