"""`make studies`: run all shipped studies in short form on a lab, with results in profiles/README.md.

    python -m tests.lab.studies [--publish] [--full] [--keep DIR] [NAME...]

brings the lab up, runs the named studies (default all), prints their results, and takes the lab down. --publish writes
the verdicts of all short forms, or the result of each named study or full form, into profiles/README.md. Exit status 1:
a study did not end, fewer than 90% of the planned comparisons are conclusive, or an A/A control contradicts one.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from cockpit.model.errors import EXIT_INTERRUPTED
from tests.data import data_of
from tests.lab import results_page
from tests.lab.hosts import NAMES
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

DATA = data_of(__file__)

# By the age of the question, oldest first.
STUDIES = DATA["studies"]
# Files of the kernel that a study needs: it refuses to run without them.
NEEDS = {"ktls": Path("/proc/net/tls_stat")}
# Exit codes of a complete study: stable, unstable.
ENDED = (0, 4)
LEAST_CONCLUSIVE = 0.9
SHARE = 0.4  # of CPU 0 for each host: at most two hosts of a study are busy at the same time


def run(lab: Lab, name: str, form: str, folder: Path) -> int:
    """Run a study into a folder; return its exit code. Progress goes to stderr.

    On Ctrl-C the study, which got the signal too, first restores its hosts.
    """
    profile = str(results_page.PROFILES / f"{name}.toml")
    command = [sys.executable, "-m", "cockpit", "study", profile, f"--{form}", "--fresh", "--no-tui"]
    command += ["--ssh-config", str(lab.ssh_config), "-o", str(folder)]
    with subprocess.Popen(lab.as_generator(command), stdin=subprocess.DEVNULL, cwd=REPOSITORY) as study:
        while True:
            try:
                return study.wait()
            except KeyboardInterrupt:
                print("interrupted: waiting until the hosts are restored", file=sys.stderr)


def has_kernel(name: str) -> bool:
    """Return whether this kernel has what a study needs; print the reason if not."""
    missing = name in NEEDS and not NEEDS[name].exists()
    if missing:
        print(f"{name}: not run: this kernel has no {NEEDS[name]}; load its module first", file=sys.stderr)
    return not missing


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.studies", description="The studies on a lab.")
    parser.add_argument("--publish", action="store_true", help="write the results into profiles/README.md")
    parser.add_argument("--full", dest="form", action="store_const", const="full", default="short", help="hours")
    parser.add_argument("--keep", metavar="DIR", help="keep recordings and results, a folder per study")
    parser.add_argument("name", nargs="*", choices=[*STUDIES, []], help=f"studies (default all): {', '.join(STUDIES)}")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    counted, failed, began = results_page.Tally(Counter(), 0), [], time.monotonic()
    rows: list[str] = []
    results = nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory(prefix="studies-")
    with results as directory, Lab.start(*NAMES, share=SHARE) as lab:
        print(f"lab: {lab.cpus}", file=sys.stderr)
        for name in options.name or filter(has_kernel, STUDIES):
            folder, begun = Path(directory, name), time.monotonic()
            code = run(lab, name, options.form, folder)
            if code == EXIT_INTERRUPTED:
                return code
            if code not in ENDED:
                failed.append(name)
                continue
            description = results_page.run_words(options.form, lab.cpus, time.monotonic() - begun)
            if options.publish and (options.name or options.form == "full"):
                result = results_page.result_of(folder, description)
                results_page.write(name, results_page.section(results_page.about(name), result))
            rows += results_page.short_rows(name, folder)
            tally = results_page.tally(folder)
            counted += tally
            print(f"{name}: {description} {tally}", file=sys.stderr)
    if options.publish and options.form == "short" and not options.name and not failed:
        description = results_page.run_words(options.form, lab.cpus, time.monotonic() - began)
        results_page.write(results_page.SHORT_FORMS, results_page.short_section(rows, description, counted))
    print(f"all studies: {(time.monotonic() - began) / 60:.0f} min; {counted}", file=sys.stderr)
    if failed:
        print(f"not completed: {', '.join(failed)}", file=sys.stderr)
    enough = counted.conclusive >= LEAST_CONCLUSIVE * counted.total and not counted.contradicted
    return int(bool(failed) or not enough)


if __name__ == "__main__":
    sys.exit(main())
