#pragma once

namespace headrace::cli {

/// The whole program: finds the command, reads its options, runs it, and turns what went wrong into a message on
/// standard error and an exit status.
int run_command_line(int argument_count, const char* const* arguments);

}  // namespace headrace::cli
