#!/usr/bin/env python3
"""Runs the tests and says what happened: how many passed, and by name what failed or was skipped, and why.

Usage: run_tests.py FOLDER [--only REGEX] [--jobs N]   the C++ tests of a build folder, through ctest
       run_tests.py --python                           the Python tests: every tests/**/test_*.py
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEM_PYTHON = "/usr/bin/python3"
# Modules that a folder of Python tests cannot run without, beyond the standard library.
NEEDED_MODULES = {"tests/oracle": "numpy"}
FAILURE_LINES_MAX = 200
SKIP_REASON = re.compile(r"Skipped\n(.*?)\n", re.DOTALL)


@dataclass
class Outcome:
    passed: int = 0
    failed: list = field(default_factory=list)   # (name, output)
    skipped: list = field(default_factory=list)  # (name, reason)


def reason_of(output):
    """Why a GoogleTest case was skipped: the line after "Skipped"."""
    match = SKIP_REASON.search(output)
    return match.group(1).strip() if match else "no reason given"


def read_junit(path):
    """The outcome that ctest wrote as JUnit XML."""
    outcome = Outcome()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        status = case.get("status")
        if case.find("skipped") is not None or status in ("notrun", "disabled"):
            outcome.skipped.append((case.get("name"), reason_of(output)))
        elif case.find("failure") is not None or status == "fail":
            outcome.failed.append((case.get("name"), output))
        else:
            outcome.passed += 1
    return outcome


def run_ctest(folder, only, jobs):
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.xml")
        command = ["ctest", "--test-dir", str(folder), "--parallel", str(jobs), "--quiet", "--output-junit", report]
        if only:
            command += ["--tests-regex", only]
        environment = {"ASAN_OPTIONS": "print_legend=0", **os.environ}
        status = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment).returncode
        if not os.path.exists(report):
            return Outcome(failed=[("ctest", f"ended with status {status} and no report")])
        outcome = read_junit(report)
    if status != 0 and not outcome.failed:
        outcome.failed.append(("ctest", f"ended with status {status}"))
    return outcome


def python_suites():
    """Folders with files of unittest, relative to the project."""
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")})


def run_python_suite(folder):
    """The outcome of one folder of unittest files, run by the system's Python."""
    module = NEEDED_MODULES.get(folder)
    if module and subprocess.run([SYSTEM_PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
        return Outcome(skipped=[(folder, f"{SYSTEM_PYTHON} has no module {module}")])
    run = subprocess.run([SYSTEM_PYTHON, "-m", "unittest", "discover", "-v", "-s", folder, "-p", "test_*.py"], cwd=ROOT,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return read_unittest(folder, run.returncode, run.stdout)


def read_unittest(folder, status, output):
    skipped = [(name, reason) for name, reason in re.findall(r"^(\S+) .*\.\.\. skipped ['\"](.*)['\"]$", output, re.MULTILINE)]
    count = re.search(r"^Ran (\d+) tests? in", output, re.MULTILINE)
    ran = int(count.group(1)) if count else 0
    if status != 0 or ran == 0:
        return Outcome(failed=[(folder, output)])
    return Outcome(passed=ran - len(skipped), skipped=skipped)


def report(title, outcome, seconds):
    """Prints the outcome; the summary stands in the last line."""
    for name, output in outcome.failed:
        lines = output.splitlines()
        print(f"FAILED  {name}")
        print("\n".join("        " + line for line in lines[-FAILURE_LINES_MAX:]))
    for name, reason in outcome.skipped:
        print(f"SKIP    {name}: {reason}")
    word = "FAILED" if outcome.failed else "ok    "
    print(f"{word}  {title}: {outcome.passed} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped"
          f" ({seconds:.0f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--only", help="regular expression on test names")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--python", action="store_true")
    arguments = parser.parse_args()
    if arguments.python == bool(arguments.folder):
        parser.error("give a build folder, or --python")
    start = time.monotonic()
    if arguments.python:
        title, outcome = "Python tests", Outcome()
        for folder in python_suites():
            part = run_python_suite(folder)
            outcome.passed += part.passed
            outcome.failed += part.failed
            outcome.skipped += part.skipped
    else:
        title = f"C++ tests of {arguments.folder}" + (f" matching {arguments.only}" if arguments.only else "")
        outcome = run_ctest(arguments.folder, arguments.only, arguments.jobs)
        if not outcome.passed and not outcome.failed:
            outcome.failed.append(("ctest", "ran no test at all"))
    report(title, outcome, time.monotonic() - start)
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
