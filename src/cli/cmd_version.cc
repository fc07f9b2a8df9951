#include <fmt/format.h>

#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/streams.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

std::string joined(const nlohmann::json& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

}  // namespace

ExitStatus version(const Settings& settings) {
  const std::string json = api::build_json();
  if (settings.json) {
    write_stdout(json + "\n");
    return kDone;
  }
  const auto build = nlohmann::json::parse(json);
  write_stdout(fmt::format("headrace {}\nbuilt with {}\ninstruction set {} (of {})\nI/O {} (of {})\n",
                           build["version"].get<std::string>(), build["compiler"].get<std::string>(),
                           build["isa"].get<std::string>(), joined(build["isas"]),
                           build["io_backend"].get<std::string>(), joined(build["io_backends"])));
  return kDone;
}

}  // namespace headrace::cli::cmd
