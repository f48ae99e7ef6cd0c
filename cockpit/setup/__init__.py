"""Setup: the doctor, and drafts of new profiles."""
