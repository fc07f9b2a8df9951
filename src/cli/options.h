#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/settings.h"

namespace headrace::cli {

/// Which commands know an option: a command names the groups that it takes.
enum OptionGroup : unsigned {
  kModelOptions = 1u << 0,
  kPromptOptions = 1u << 1,
  kSamplingOptions = 1u << 2,
  kRunOptions = 1u << 3,
  kEvalOptions = 1u << 4,
  kFileOption = 1u << 5,
  kMarkupOption = 1u << 6,
  kJsonOption = 1u << 7,
  kStatsOption = 1u << 8,
  kPlanOptions = 1u << 9,
  kSynthOptions = 1u << 10,
  kChatOptions = 1u << 11,
  kAllCommands = 1u << 31,
};

/// One row of the table that command line and --help read.
struct Option {
  std::string_view name;   ///< Without dashes; one letter: it has no long spelling.
  char short_name;         ///< 0: none.
  std::string_view value;  ///< Placeholder of the value; empty for a switch.
  std::string_view help;
  unsigned groups;
  /// Takes the value in; a UsageError says what is allowed.
  void (*set)(Settings& settings, std::string_view value);
  bool is_repeatable = false;
};

/// Reads the words after the command: options of `groups`, and other words as arguments. "--" ends the options. A
/// UsageError names the option that is unknown, bad, doubled or without its value.
Settings parse_options(std::span<const char* const> words, unsigned groups);

/// The options of `groups` for --help, one or more lines each.
std::string options_help(unsigned groups);

}  // namespace headrace::cli
