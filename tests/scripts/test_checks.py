"""Tests of the scripts behind `make check`: each rule refuses what it should, and only that."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_layers  # noqa: E402
import check_source  # noqa: E402

CMAKE = """
layer(base   MAY_USE            LIBRARIES Threads::Threads)
layer(io     MAY_USE base)   # layer(text MAY_USE io)
layer(text   MAY_USE base       LIBRARIES nlohmann_json::nlohmann_json PkgConfig::PCRE2)
layer(api    MAY_USE base text)
layer(cli    MAY_USE            LIBRARIES fmt::fmt)
"""


class ProjectCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("CMakeLists.txt", CMAKE)
        self.write("src/base/result.h", "#pragma once\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class LayersTest(ProjectCase):
    def faults(self):
        return check_layers.check_project(self.root)

    def assert_one_fault(self, *parts):
        faults = self.faults()
        self.assertEqual(len(faults), 1, faults)
        for part in parts:
            self.assertIn(part, faults[0])

    def test_reads_every_layer_line_and_no_comment(self):
        layers = check_layers.read_layers(CMAKE)
        self.assertEqual(list(layers), ["base", "io", "text", "api", "cli"])
        self.assertEqual(layers["api"].may_use, {"base", "text"})
        self.assertIn("PCRE2", layers["text"].libraries)

    def test_allowed_includes_pass(self):
        self.write("src/text/a.h", "#pragma once\n#include <vector>\n#include <nlohmann/json.hpp>\n"
                   '#include "base/result.h"\n#include "text/b.h"\n')
        self.write("src/text/b.h", "// Why.\n#pragma once\n")
        self.write("src/cli/main.cc", "#include <headrace/headrace.h>\n#include <fmt/format.h>\n")
        self.write("include/headrace/headrace.h", "#ifndef HEADRACE_H\n#define HEADRACE_H\n#include <stdint.h>\n#endif\n")
        self.write("tests/io/a.cc", '#include "base/result.h"\n#include <gtest/gtest.h>\n')
        self.assertEqual(self.faults(), [])

    def test_an_arrow_upwards_is_refused(self):
        self.write("src/io/a.cc", '#include "base/result.h"\n  #  include "text/b.h"\n')
        self.assert_one_fault("src/io/a.cc:2", "text/b.h", "io may use base")

    def test_an_arrow_sideways_is_refused(self):
        self.write("src/cli/main.cc", '#include "base/result.h"\n')
        self.assert_one_fault("src/cli/main.cc:1", "no other layer")

    def test_relative_includes_are_refused_everywhere(self):
        for name in ("src/io/a.cc", "tests/io/a.cc", "bench/a.cc"):
            self.write(name, '#include "../base/result.h"\n')
        self.assertEqual(len(self.faults()), 3)

    def test_the_public_header_is_for_the_top(self):
        self.write("src/api/a.cc", '#include "headrace/headrace.h"\n')
        self.write("src/text/a.cc", '#include "headrace/headrace.h"\n')
        self.assert_one_fault("src/text/a.cc:1")

    def test_third_party_headers_need_their_package(self):
        self.write("src/io/a.cc", "#include <nlohmann/json.hpp>\n")
        self.assert_one_fault("src/io/a.cc:1", "layer line of io")

    def test_quotes_are_for_the_project(self):
        self.write("src/io/a.cc", '#include "vector"\n')
        self.assert_one_fault("src/io/a.cc:1", "quotes")

    def test_missing_files_are_named(self):
        self.write("src/io/a.cc", '#include "base/resutl.h"\n')
        self.assert_one_fault("does not exist")

    def test_headers_guard_themselves(self):
        self.write("src/io/a.h", "int f();\n")
        self.assert_one_fault("src/io/a.h", "#pragma once")

    def test_the_public_header_stands_alone(self):
        self.write("include/headrace/headrace.h", '#pragma once\n#include "base/result.h"\n')
        self.assert_one_fault("include/headrace/headrace.h:2")

    def test_a_folder_without_a_layer_line_is_refused(self):
        self.write("src/magic/a.cc", "")
        self.assert_one_fault("magic")

    def test_a_layer_may_only_use_those_above_it(self):
        self.write("CMakeLists.txt", "layer(base MAY_USE io)\nlayer(io MAY_USE base)\n")
        self.assert_one_fault("base may use io")

    def test_no_layers_at_all_is_a_fault(self):
        self.write("CMakeLists.txt", "project(x)\n")
        self.assertEqual(len(self.faults()), 1)


class SourceTest(ProjectCase):
    def faults_of(self, text, name="src/io/a.cc"):
        self.write(name, text)
        return check_source.check_project(self.root)

    def test_plain_code_passes(self):
        self.assertEqual(self.faults_of("int f() { return log.printf(1) + exit_code(2); }  // printf(\"x\")\n"
                                        "const char* text = \"throw std::cout exit(1)\";\n"), [])

    def test_calls_that_belong_to_the_cli_are_refused_below(self):
        for call in ('std::printf("x");', 'fprintf(stderr, "x");', "std::cerr << 1;", "exit(1);", "std::abort();", "_exit(1);",
                     "throw 1;", 'getenv("X");', 'std::getenv("X");', "thread.detach();"):
            self.assertEqual(len(self.faults_of(f"void f() {{\n  {call}\n}}\n")), 1, call)

    def test_the_cli_may_print(self):
        self.assertEqual(self.faults_of('void f() { std::printf("x"); exit(2); }\n', "src/cli/a.cc"), [])

    def test_lines_keep_their_numbers(self):
        self.assertTrue(self.faults_of('/* a\n b */\nconst char* t = R"(x\ny)";\nvoid f() { throw 1; }\n')[0].startswith(
            "src/io/a.cc:5:"))

    def test_long_files_need_a_reason(self):
        self.assertEqual(len(self.faults_of("\n" * 801)), 1)
        self.assertEqual(self.faults_of("// over the limit: one table.\n" + "\n" * 801), [])
        self.assertEqual(self.faults_of("\n" * 799), [])
        self.assertEqual(len(self.faults_of("#pragma once\n" + "\n" * 400, "src/io/b.h")), 1)

    def test_try_after_another_element_in_braces_is_refused(self):
        for text in ("return Pair{TRY(a()), TRY(b())};", "Pair p = {.a = f(1), .b = TRY(b())};", "use({g(x), TRY(b())});",
                     "return Pair{name, f(TRY(b()))};", "std::vector<Item> v{x, y, TRY(b())};"):
            self.assertEqual(len(self.faults_of(f"Status f() {{\n  {text}\n}}\n")), 1, text)

    def test_try_elsewhere_is_fine(self):
        for text in ("return use(TRY(a()), TRY(b()));", "return Pair{.a = TRY(a())};", "if (x) { int a, b = 1; TRY(c()); }",
                     "for (int i = 0, n = 2; i < n; ++i) { TRY(a()); }", "auto f = [&](int a, int b) -> Status { TRY(c()); };",
                     "auto f = [a, b] { TRY(c()); };", "const Pair p{a, b}; TRY(c());", "do { f(a, b); TRY(c()); } while (x);",
                     "switch (x) { case 1: { f(a, b); TRY(c()); } }", "TRY(f({a, b}));"):
            self.assertEqual(self.faults_of(f"Status f(int a, int b) {{\n  {text}\n}}\n"), [], text)

    def test_try_in_functions_of_classes_and_namespaces_is_fine(self):
        self.assertEqual(self.faults_of("namespace a::b {\nenum E { kA, kB };\nclass X final : public Y, public Z {\n"
                                        "  Status f() const override { TRY(g()); }\n  X() : a_(1), b_{2} { h(); }\n};\n}\n"), [])


class ThisProjectTest(unittest.TestCase):
    def test_the_layer_lines_of_this_project_are_read(self):
        layers = check_layers.read_layers((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
        self.assertIn("base", layers)
        self.assertEqual(layers["base"].may_use, frozenset())


if __name__ == "__main__":
    unittest.main()
