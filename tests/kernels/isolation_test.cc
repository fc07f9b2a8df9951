#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace headrace {
namespace {

/// What a shell command prints; empty when it fails.
std::string output_of(const std::string& command) {
  const auto close = [](FILE* file) { pclose(file); };
  const std::unique_ptr<FILE, decltype(close)> pipe(popen((command + " 2>/dev/null").c_str(), "r"), close);
  std::string text;
  char buffer[4096];
  for (size_t count; pipe && (count = fread(buffer, 1, sizeof(buffer), pipe.get())) > 0;) text.append(buffer, count);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const char kLibrary[] = HEADRACE_BINARY_DIR "/libheadrace_kernels.a";

/// Mangled names of the functions of the library whose code uses an encoding past the first x86-64.
std::set<std::string> functions_with_wide_code() {
  std::set<std::string> found;
  std::string function;
  for (const std::string& line : lines_of(output_of(std::string("objdump -d --no-show-raw-insn ") + kLibrary))) {
    if (line.ends_with(">:")) function = line.substr(line.find('<') + 1, line.size() - line.find('<') - 3);
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) continue;
    // Instructions of AVX and later begin with a v.
    if (line[tab + 1] == 'v') found.insert(function);
  }
  return found;
}

/// Mangled names that other files can see.
std::set<std::string> visible_functions() {
  std::set<std::string> visible;
  for (const std::string& line : lines_of(output_of(std::string("nm --defined-only ") + kLibrary))) {
    // Address, kind, name; local functions have kind t.
    if (line.size() > 19 && std::string("TWVui").find(line[17]) != std::string::npos) visible.insert(line.substr(19));
  }
  return visible;
}

bool has_prerequisites() {
#if defined(__x86_64__)
  return !output_of("objdump --version").empty() && std::filesystem::exists(kLibrary);
#else
  return false;
#endif
}
constexpr char kReason[] = "needs x86-64, whose regions this is about, objdump, and the library beside the tests";

/// An instruction set may share no code with the rest of the program: of two copies of an inline function the linker
/// keeps either one, and may give AVX-512 code to a processor without it.
TEST(Isolation, WideInstructionsStayInFunctionsThatOnlyTheirTableReaches) {
  if (!has_prerequisites()) GTEST_SKIP() << kReason;
  const std::set<std::string> visible = visible_functions();
  ASSERT_EQ(visible.count("_ZN8headrace14usable_kernelsEv"), 1u);
  for (const std::string& function : functions_with_wide_code()) EXPECT_EQ(visible.count(function), 0u) << function;
}

TEST(Isolation, TheCheckFindsWideCode) {
  if (!has_prerequisites()) GTEST_SKIP() << kReason;
  std::string all;
  for (const std::string& function : functions_with_wide_code()) all += function + "\n";
  EXPECT_NE(all.find("Avx512Vector"), std::string::npos);
  EXPECT_NE(all.find("Avx2Vector"), std::string::npos);
  EXPECT_EQ(all.find("ScalarVector"), std::string::npos);
}

}  // namespace
}  // namespace headrace
