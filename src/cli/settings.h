#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::cli {

/// Everything that options can set; what was not given has its default.
struct Settings {
  /// MODEL, PROMPT, ... in order.
  std::vector<std::string> arguments;
  /// Long names of the options given.
  std::vector<std::string_view> given;
  bool help = false;

  // Memory and machine.
  uint64_t budget_bytes = 0;  ///< 0: automatic; HEADRACE_BUDGET_FLOOR.
  size_t context_tokens = 0;
  size_t thread_count = 0;
  std::string cpus;
  std::string isa;
  bool buffered_io = false;
  size_t prefill_chunk_tokens = 0;
  std::string io_backend;
  size_t io_depth = 0;
  std::string cache_policy;
  int64_t pinned_layers = 0;  ///< 0: what the plan finds best; -1: none.
  uint64_t ram_bytes = 0;
  double drive_gb_s = 0;
  headrace_log_level log_level = HEADRACE_LOG_WARN;

  // Prompt.
  std::string file;
  std::vector<int32_t> ids;
  bool raw = false;
  bool markup = false;
  std::string system;
  std::string think;  ///< "": as the chat format has it.

  // Generation.
  std::optional<size_t> tokens_max;
  double temperature = 0;
  double top_p = 1;
  double min_p = 0;
  size_t top_k = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;

  // Results.
  bool json = false;
  std::string stats_file;
  std::string logits;  ///< "", "all" or "last".
  std::string logits_file;
  size_t top = 0;
  bool trace_experts = false;
  bool perplexity = false;

  // Made-up models; 0: as the shape has it.
  size_t shared_layers = 0;
  size_t layers = 0;
  size_t expert_count = 0;
  bool scattered = false;

  bool has(std::string_view name) const;
};

}  // namespace headrace::cli
