#include "cli/open_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/exit_status.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "cli/streams.h"

namespace headrace::cli {
namespace {

void log_line(void*, headrace_log_level level, const char* line, size_t bytes) {
  constexpr std::array kNames = {"error", "warning", "info", "debug"};
  tell(fmt::format("{}: {}", kNames[std::min<size_t>(level, kNames.size() - 1)], std::string_view(line, bytes)));
}

/// " (3.2 tokens/s)", or nothing where a counter is null.
std::string per_second(const nlohmann::json& value) {
  return value.is_null() ? std::string() : fmt::format(" ({:.1f} tokens/s)", value.get<double>());
}

api::Model open_with_progress(const std::string& folder, const api::ModelOptions& options) {
  const OpeningProgress progress(folder);
  return api::Model(folder, options);
}

}  // namespace

api::ModelOptions model_options(const Settings& settings, size_t logits_rows) {
  api::ModelOptions options;
  options.budget_bytes = settings.budget_bytes;
  options.context_tokens = settings.context_tokens;
  options.thread_count = settings.thread_count;
  options.cpus = settings.cpus;
  options.isa = settings.isa;
  options.buffered_io = settings.buffered_io;
  options.log_level = settings.log_level;
  options.log = log_line;
  options.prefill_chunk_tokens = settings.prefill_chunk_tokens;
  options.logits_rows = logits_rows;
  options.io_backend = settings.io_backend;
  options.io_depth = settings.io_depth;
  options.cache_policy = settings.cache_policy;
  options.pinned_layers = settings.pinned_layers;
  options.ram_bytes = settings.ram_bytes;
  return options;
}

api::Model open_model(const Settings& settings, size_t logits_rows) {
  const std::string folder = model_folder(settings.arguments.at(0));
  api::Model model = open_with_progress(folder, model_options(settings, logits_rows));
  if (settings.budget_bytes == 0 || settings.budget_bytes == HEADRACE_BUDGET_FLOOR) {
    const auto plan = nlohmann::json::parse(model.plan_json());
    const char* origin =
        settings.budget_bytes == 0 ? "80 % of what this machine allows; --budget SIZE sets another" : "the floor";
    tell(fmt::format("budget {} ({})", size_text(plan["budget_bytes"]), origin));
  }
  return model;
}

std::string statistics_line(const std::string& stats_json) {
  const auto stats = nlohmann::json::parse(stats_json);
  std::string line = fmt::format("prompt {} tokens in {:.2f} s{}, answer {} tokens in {:.2f} s{}",
                                 stats["prompt_tokens"].get<uint64_t>(), stats["prefill_s"].get<double>(),
                                 per_second(stats["prefill_tok_s"]), stats["tokens"].get<uint64_t>(),
                                 stats["decode_s"].get<double>(), per_second(stats["decode_tok_s"]));
  line += fmt::format("; read {}", size_text(stats["bytes_read"]));
  const double hits = stats["expert_hits"];
  const double uses = hits + stats["expert_misses"].get<double>();
  if (uses > 0) line += fmt::format(", expert hits {:.1f} %", 100 * hits / uses);
  line += fmt::format(", waited {:.2f} s for reads", stats["io_wait_s"].get<double>());
  if (!stats["drive_gb_s"].is_null()) line += fmt::format(" at {:.2f} GB/s", stats["drive_gb_s"].get<double>());
  if (!stats["peak_rss_bytes"].is_null()) line += fmt::format("; peak memory {}", size_text(stats["peak_rss_bytes"]));
  return line + fmt::format(" of a budget of {}", size_text(stats["budget_bytes"]));
}

std::string size_text(double bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

void check_stats_file(const Settings& settings) {
  if (settings.stats_file.empty()) return;
  std::filesystem::path folder = std::filesystem::path(settings.stats_file).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), X_OK) == 0) return;
  throw StreamError(fmt::format("write {}: {}", settings.stats_file, std::strerror(errno)));
}

void write_stats_file(const Settings& settings, const std::string& json) {
  if (settings.stats_file.empty()) return;
  AtomicFile file(settings.stats_file);
  file.write(json);
  file.write("\n");
  file.commit();
}

}  // namespace headrace::cli
