#pragma once

#include <span>
#include <string_view>

#include "cli/exit_status.h"
#include "cli/settings.h"

namespace headrace::cli {

/// One row of the table of commands.
struct Command {
  std::string_view name;
  std::string_view arguments;  ///< "MODEL [PROMPT]"
  std::string_view summary;    ///< One line.
  std::string_view details;    ///< For --help: what else there is to know, and examples.
  unsigned groups;             ///< Of options.
  size_t arguments_min;
  size_t arguments_max;
  /// Null: not available in this version.
  ExitStatus (*run)(const Settings& settings);
};

std::span<const Command> commands();

namespace cmd {
ExitStatus run(const Settings& settings);
ExitStatus chat(const Settings& settings);
ExitStatus eval(const Settings& settings);
ExitStatus tokenize(const Settings& settings);
ExitStatus detokenize(const Settings& settings);
ExitStatus plan(const Settings& settings);
ExitStatus info(const Settings& settings);
ExitStatus synth(const Settings& settings);
ExitStatus version(const Settings& settings);
}  // namespace cmd

}  // namespace headrace::cli
