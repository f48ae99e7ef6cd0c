"""Status pages of real servers by kind, shortened: the files in `status_pages/`."""

from pathlib import Path

PAGES = {path.stem: path.read_text() for path in Path(__file__).with_name("status_pages").glob("*.txt")}
