#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace headrace::test {

struct ProgramResult {
  int exit_status = -1;  ///< -1: ended by a signal.
  std::string out;
  std::string error;
};

struct ProgramSetup {
  std::string input;
  /// Called in the child before the program starts.
  std::function<void()> in_child;
  /// Called with the program's id when its first byte of output has come.
  std::function<void(pid_t)> on_first_output;
  /// Reads no output: the other end of the pipe is closed at once.
  bool close_output = false;
};

/// Runs the headrace of this build.
ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramSetup& setup = {});

/// The same; expects exit status 0 and one JSON object on standard output.
nlohmann::json run_for_json(const std::vector<std::string>& arguments, const ProgramSetup& setup = {});

}  // namespace headrace::test
