"""Tests of the test runner: failures and skips are never lost."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))

import run_tests  # noqa: E402

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="4" failures="1" disabled="0" skipped="1">
  <testcase name="base.A" classname="base.A" time="0.1" status="run"><system-out>fine</system-out></testcase>
  <testcase name="base.B" classname="base.B" time="0.1" status="fail">
    <failure message=""/><system-out>line one
line two</system-out></testcase>
  <testcase name="base.C" classname="base.C" time="0.1" status="notrun">
    <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>[ RUN      ] C
/a/b.cc:171: Skipped
needs two processors
[  SKIPPED ] C (0 ms)</system-out></testcase>
  <testcase name="base.D" classname="base.D" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
"""

UNITTEST = """test_a (test_x.X.test_a)
Docstring. ... ok
test_b (test_x.X.test_b) ... skipped 'no weights here'

----------------------------------------------------------------------
Ran 2 tests in 0.1s

OK (skipped=1)
"""


class RunTestsTest(unittest.TestCase):
    def test_reads_passes_failures_and_skips_with_reasons(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(JUNIT)
            file.flush()
            outcome = run_tests.read_junit(file.name)
        self.assertEqual(outcome.passed, 1)
        self.assertEqual(outcome.failed, [("base.B", "line one\nline two")])
        self.assertEqual(outcome.skipped, [("base.C", "needs two processors"), ("base.D", "no reason given")])

    def test_reads_unittest_output(self):
        outcome = run_tests.read_unittest("tests/x", 0, UNITTEST)
        self.assertEqual((outcome.passed, outcome.failed), (1, []))
        self.assertEqual(outcome.skipped, [("test_b", "no weights here")])

    def test_a_failing_or_empty_python_suite_fails(self):
        self.assertEqual(len(run_tests.read_unittest("tests/x", 1, UNITTEST).failed), 1)
        self.assertEqual(len(run_tests.read_unittest("tests/x", 0, "Ran 0 tests in 0.0s\n\nOK\n").failed), 1)

    def test_a_folder_without_a_build_fails(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.assertTrue(run_tests.run_ctest(folder + "/nothing", None, 1).failed)

    def test_the_report_ends_with_the_summary(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            run_tests.report("tests", run_tests.Outcome(3, [("a", "boom")], [("b", "no drive")]), 1.0)
        lines = text.getvalue().splitlines()
        self.assertIn("        boom", lines)
        self.assertIn("SKIP    b: no drive", lines)
        self.assertEqual(lines[-1], "FAILED  tests: 3 passed, 1 failed, 1 skipped (1 s)")


if __name__ == "__main__":
    unittest.main()
