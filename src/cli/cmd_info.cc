#include <fmt/format.h>

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/open_model.h"
#include "cli/streams.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// "9.7 million", "2.78 trillion"
std::string count_text(double count) {
  if (count >= 1e12) return fmt::format("{:.2f} trillion", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.1f} billion", count / 1e9);
  return fmt::format("{:.1f} million", count / 1e6);
}

/// "kda+dense 1, kda+moe 3"
std::string kinds_text(const Json& kinds) {
  std::map<std::string, size_t> counts;
  for (const auto& kind : kinds) ++counts[kind.get<std::string>()];
  std::string text;
  for (const auto& [kind, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  return text;
}

std::string text_or(const Json& value, const char* absent) {
  return value.is_null() ? absent : value.get<std::string>();
}

std::string readable(const Json& info) {
  const auto number = [&info](const char* key) { return info[key].get<uint64_t>(); };
  const auto size = [&info](const char* key) { return size_text(info[key].get<double>()); };
  std::string text;
  const auto row = [&text](const char* name, const std::string& value) {
    text += fmt::format("{:<14}{}\n", name, value);
  };
  row("model", fmt::format("{} (family {})", info["name"].get<std::string>(), info["family"].get<std::string>()));
  row("parameters", fmt::format("{}, {} for one token", count_text(info["parameters"].get<double>()),
                                count_text(info["active_parameters"].get<double>())));
  row("layers", fmt::format("{}: {}", number("layers"), kinds_text(info["layer_kinds"])));
  row("shape", fmt::format("hidden {}, vocabulary {}, context up to {} tokens", number("hidden_size"),
                           number("vocabulary_size"), number("context_tokens_max")));
  row("files", fmt::format("{} in {} tensors", size("checkpoint_bytes"), number("tensors")));
  row("trunk", fmt::format("{}, {}", size("trunk_bytes"), text_or(info["trunk_format"], "no format")));
  if (number("experts") > 0) {
    row("experts", fmt::format("{} in each of {} layers, {} for one token; one is {} of {}", number("experts"),
                               number("moe_layers"), number("experts_per_token"), size("expert_bytes"),
                               text_or(info["expert_format"], "no format")));
    row("working set", fmt::format("{} of experts for one token", size("working_set_bytes")));
  }
  if (!info["synthetic"].is_null()) text += fmt::format("synthetic: {}\n", info["synthetic"].get<std::string>());
  row("chat format", text_or(info["chat_format"], "none"));
  if (info["vision"].get<bool>()) row("images", "the files hold an image tower; this version does not run it");
  return text;
}

}  // namespace

ExitStatus info(const Settings& settings) {
  const std::string json = api::describe(model_folder(settings.arguments[0]));
  write_stdout(settings.json ? json + "\n" : readable(Json::parse(json)));
  return kDone;
}

}  // namespace headrace::cli::cmd
