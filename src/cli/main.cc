#include "cli/command_line.h"

int main(int argument_count, char** arguments) {
  return headrace::cli::run_command_line(argument_count, arguments);
}
