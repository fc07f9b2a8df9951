#include "cli/command_line.h"

#include <fmt/format.h>

#include <new>
#include <span>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/streams.h"
#include "headrace/headrace.hpp"

namespace headrace::cli {
namespace {

std::string general_help() {
  std::string help =
      "headrace runs mixture-of-experts language models that are far larger than memory.\n\n"
      "headrace COMMAND ...; MODEL is a folder, or 'demo', the small model that ships with the program.\n\n";
  for (const Command& command : commands()) {
    help += fmt::format("  {:<28}{}{}\n", fmt::format("{} {}", command.name, command.arguments), command.summary,
                        command.run ? "" : " (not in this version)");
  }
  return help +
         "\nheadrace COMMAND --help tells its options, with examples. Sizes such as 64M and 3.2G are powers of 1024.\n"
         "Exit status: 0 done, 2 wrong use, 3 budget below the floor, 4 damaged or unsupported file, 5 read or write\n"
         "failed, 6 cancelled, 70 a bug.\n";
}

std::string command_help(const Command& command) {
  return fmt::format("headrace {} {}\n\n{}\n\n{}\nOptions:\n{}", command.name, command.arguments, command.summary,
                     command.details, options_help(command.groups));
}

const Command& find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return command;
  }
  if (name.starts_with("-")) throw UsageError(fmt::format("unknown option {}; a command comes first", name));
  throw UsageError(fmt::format("unknown command '{}'; 'headrace --help' lists them", name));
}

ExitStatus run_command(const Command& command, std::span<const char* const> words) {
  if (!command.run) throw UsageError("not available in this version");
  const Settings settings = parse_options(words, command.groups);
  if (settings.help) {
    write_stdout(command_help(command));
    return kDone;
  }
  if (settings.arguments.size() < command.arguments_min) {
    throw UsageError(fmt::format("{} is missing; usage: headrace {} {}", "MODEL", command.name, command.arguments));
  }
  if (settings.arguments.size() > command.arguments_max) {
    throw UsageError(fmt::format("stray argument '{}'; usage: headrace {} {}",
                                 settings.arguments[command.arguments_max], command.name, command.arguments));
  }
  return command.run(settings);
}

ExitStatus dispatch(std::span<const char* const> words, std::string& context) {
  if (words.empty()) {
    write_stderr(general_help());
    return kWrongUse;
  }
  const std::string_view first = words[0];
  if (first == "--help" || first == "-h" || first == "help") {
    write_stdout(general_help());
    return kDone;
  }
  const Command& command = find_command(first == "--version" ? "version" : first);
  context = fmt::format("{}: ", command.name);
  return run_command(command, words.subspan(1));
}

}  // namespace

int run_command_line(int argument_count, const char* const* arguments) {
  fill_closed_streams();
  install_signal_handlers();
  std::string context;
  const auto fail = [&context](ExitStatus status, std::string_view message) {
    tell(fmt::format("{}{}", context, message));
    return status;
  };
  try {
    const size_t skipped = argument_count > 0 ? 1 : 0;
    return dispatch({arguments + skipped, static_cast<size_t>(argument_count) - skipped}, context);
  } catch (const UsageError& failure) {
    return fail(kWrongUse, failure.what());
  } catch (const api::Error& failure) {
    return fail(exit_status_of(failure.status()), failure.what());
  } catch (const ReaderGone&) {
    return kReadOrWriteFailed;
  } catch (const StreamError& failure) {
    return fail(kReadOrWriteFailed, failure.what());
  } catch (const std::bad_alloc&) {
    return fail(kBudgetBelowFloor, "the system has no memory left");
  } catch (const std::exception& failure) {
    return fail(kBug, fmt::format("bug: {}; please report this", failure.what()));
  }
}

}  // namespace headrace::cli
