#include "cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace headrace::test {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end = ends[0];
    write_end = ends[1];
  }
};

void close_end(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

[[noreturn]] void become_program(const std::vector<std::string>& arguments, const ProgramSetup& setup, const Pipe& in,
                                 const Pipe& out, const Pipe& error) {
  dup2(in.read_end, STDIN_FILENO);
  dup2(out.write_end, STDOUT_FILENO);
  dup2(error.write_end, STDERR_FILENO);
  if (setup.in_child) setup.in_child();
  std::vector<char*> words = {const_cast<char*>(HEADRACE_PROGRAM)};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(HEADRACE_PROGRAM, words.data());
  _exit(127);
}

/// Reads what is there; false at the end.
bool read_some(int descriptor, std::string& text) {
  char buffer[1 << 16];
  const ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<size_t>(count));
  return count > 0;
}

/// Feeds the input and collects both outputs until the program closes them.
void converse(pid_t child, const ProgramSetup& setup, Pipe& in, Pipe& out, Pipe& error, ProgramResult& result) {
  size_t written = 0;
  bool told = false;
  while (out.read_end >= 0 || error.read_end >= 0) {
    pollfd polled[] = {{out.read_end, POLLIN, 0}, {error.read_end, POLLIN, 0}, {in.write_end, POLLOUT, 0}};
    if (poll(polled, 3, -1) < 0) continue;
    if (polled[0].revents != 0 && !read_some(out.read_end, result.out)) close_end(out.read_end);
    if (polled[1].revents != 0 && !read_some(error.read_end, result.error)) close_end(error.read_end);
    if (polled[2].revents != 0) {
      const ssize_t count = write(in.write_end, setup.input.data() + written, setup.input.size() - written);
      written += count > 0 ? static_cast<size_t>(count) : 0;
      if (count < 0 || written == setup.input.size()) close_end(in.write_end);
    }
    if (setup.on_first_output && !told && !result.out.empty()) {
      told = true;
      setup.on_first_output(child);
    }
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramSetup& setup) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe in;
  Pipe out;
  Pipe error;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    become_program(arguments, setup, in, out, error);
  }
  close_end(in.read_end);
  close_end(out.write_end);
  close_end(error.write_end);
  if (setup.input.empty()) close_end(in.write_end);
  if (setup.close_output) close_end(out.read_end);
  ProgramResult result;
  converse(child, setup, in, out, error, result);
  close_end(in.write_end);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

nlohmann::json run_for_json(const std::vector<std::string>& arguments, const ProgramSetup& setup) {
  const ProgramResult result = run_program(arguments, setup);
  EXPECT_EQ(result.exit_status, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out.substr(0, 200);
  return json;
}

}  // namespace headrace::test
