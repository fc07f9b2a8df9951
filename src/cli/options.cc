#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/chat_request.h"
#include "cli/exit_status.h"
#include "cli/values.h"

namespace headrace::cli {
namespace {

constexpr uint64_t kTokensMax = uint64_t{1} << 30;
constexpr uint64_t kThreadsMax = 256;
constexpr uint64_t kIoDepthMax = 256;
constexpr uint64_t kLayersMax = 100000;
constexpr double kDriveSpeedMax = 1e6;
constexpr uint64_t kExpertsMax = 1 << 16;
constexpr double kTemperatureMax = 1e6;

[[noreturn]] void refuse_unavailable(std::string_view what) {
  throw UsageError(fmt::format("{}: not available in this version", what));
}

/// For a choice of which this version has one: `available` passes, other words of `allowed` are refused by name.
void only(std::string_view value, std::string_view allowed, std::string_view available) {
  if (one_of(value, allowed) == available) return;
  throw UsageError(fmt::format("{}: not available in this version, only {}", value, available));
}

void unavailable(Settings&, std::string_view value) {
  if (value.empty()) refuse_unavailable("this option");
  refuse_unavailable(fmt::format("'{}'", value));
}

void unavailable_size(Settings& settings, std::string_view value) {
  size_bytes(value);
  unavailable(settings, value);
}

std::string not_empty(std::string_view value) {
  if (value.empty()) throw UsageError("must not be empty");
  return std::string(value);
}

headrace_log_level log_level(std::string_view value) {
  const std::string name = one_of(value, "error|warn|info|debug");
  if (name == "error") return HEADRACE_LOG_ERROR;
  if (name == "warn") return HEADRACE_LOG_WARN;
  return name == "info" ? HEADRACE_LOG_INFO : HEADRACE_LOG_DEBUG;
}

std::vector<int32_t> some_token_ids(std::string_view value) {
  std::vector<int32_t> ids = token_ids(value);
  if (ids.empty()) throw UsageError("needs at least one token id, such as 1,2,3");
  return ids;
}

using S = Settings;
using V = std::string_view;

constexpr Option kOptions[] = {
    {"help", 'h', "", "show this help", kAllCommands, [](S& s, V) { s.help = true; }},
    // Prompt.
    {"raw", 0, "", "continue PROMPT as it stands, without chat format", kRunOptions, [](S& s, V) { s.raw = true; }},
    {"ids", 0, "1,2,3", "the prompt as token ids", kPromptOptions, [](S& s, V v) { s.ids = some_token_ids(v); }},
    {"file", 0, "FILE", "take the text from FILE, byte for byte; '-' is standard input", kPromptOptions | kFileOption,
     [](S& s, V v) { s.file = not_empty(v); }},
    {"markup", 0, "", "spellings of control tokens become control tokens", kMarkupOption,
     [](S& s, V) { s.markup = true; }},
    {"image", 0, "FILE", "an image before the prompt (not in this version)", kPromptOptions | kChatOptions, unavailable,
     true},
    {"image-patches-max", 0, "N", "patch budget per image (not in this version)", kPromptOptions | kChatOptions,
     unavailable},
    {"system", 0, "TEXT", "instructions before the conversation", kChatOptions,
     [](S& s, V v) { s.system = not_empty(v); }},
    {"think", 0, kThinkingWords, "reasoning before the answer (default: as the model was made for)", kChatOptions,
     [](S& s, V v) { s.think = one_of(v, kThinkingWords); }},
    // Sampling.
    {"n", 'n', "N", "most tokens to generate (default: 512 with --raw and --ids, else what the context holds)",
     kSamplingOptions,
     [](S& s, V v) {
       s.tokens_max = whole_number(v, {1, kTokensMax});
     }},
    {"temp", 0, "T",
     "temperature; 0 takes the most probable token (default: 0 with --raw and --ids, else what suits the model)",
     kSamplingOptions,
     [](S& s, V v) {
       s.temperature = real_number(v, {0, kTemperatureMax});
     }},
    {"top-p", 0, "P", "keep the most probable tokens that have share P together (default as for --temp)",
     kSamplingOptions,
     [](S& s, V v) {
       s.top_p = real_number(v, {0, 1});
     }},
    {"top-k", 0, "K", "keep the K most probable tokens; 0 keeps all (default 0)", kSamplingOptions,
     [](S& s, V v) {
       s.top_k = whole_number(v, {0, kTokensMax});
     }},
    {"min-p", 0, "P", "keep tokens with at least share P of the best one's probability (default 0)", kSamplingOptions,
     [](S& s, V v) {
       s.min_p = real_number(v, {0, 1});
     }},
    {"seed", 0, "S", "key of the random numbers: the same seed gives the same result (default 0)",
     kSamplingOptions | kSynthOptions, [](S& s, V v) { s.seed = whole_number(v, {}); }},
    {"stop", 0, "STR", "end before this text; repeatable", kSamplingOptions,
     [](S& s, V v) { s.stops.push_back(not_empty(v)); }, true},
    // Evaluation.
    {"logits", 0, "all|last", "logits after every token, or after the last", kEvalOptions,
     [](S& s, V v) { s.logits = one_of(v, "all|last"); }},
    {"logits-bin", 0, "FILE", "write the logits there as little-endian float32, row by row", kEvalOptions,
     [](S& s, V v) { s.logits_file = not_empty(v); }},
    {"top", 0, "N", "the N most probable next tokens (default 10 when nothing else is asked for)", kEvalOptions,
     [](S& s, V v) {
       s.top = whole_number(v, {1, kTokensMax});
     }},
    {"trace-experts", 0, "", "the experts of every token, with their weights", kEvalOptions,
     [](S& s, V) { s.trace_experts = true; }},
    {"perplexity", 0, "", "perplexity of the text, in windows of --ctx tokens", kEvalOptions,
     [](S& s, V) { s.perplexity = true; }},
    {"compare", 0, "OTHER", "compare two models (not in this version)", kEvalOptions, unavailable},
    // Memory and machine.
    {"budget", 0, "SIZE", "ceiling on all memory: 64M, 3.2G, 24G, or floor (default: 80 % of what the machine allows)",
     kModelOptions, [](S& s, V v) { s.budget_bytes = v == "floor" ? HEADRACE_BUDGET_FLOOR : size_bytes(v); }},
    {"ctx", 0, "N", "context tokens (default 4096, at most the model's)", kModelOptions,
     [](S& s, V v) {
       s.context_tokens = whole_number(v, {1, kTokensMax});
     }},
    {"threads", 0, "N", "compute threads (default: what affinity and CPU quota allow)", kModelOptions,
     [](S& s, V v) {
       s.thread_count = whole_number(v, {1, kThreadsMax});
     }},
    {"cpus", 0, "LIST", "processors to run on, such as 0-3,6", kModelOptions, [](S& s, V v) { s.cpus = not_empty(v); }},
    {"prefill-chunk", 0, "N", "prompt tokens that pass through the layers together (default: what reads least)",
     kModelOptions,
     [](S& s, V v) {
       s.prefill_chunk_tokens = whole_number(v, {1, kTokensMax});
     }},
    {"isa", 0, "scalar|avx2|avx512|neon", "instruction set (default: the best)", kModelOptions,
     [](S& s, V v) { s.isa = one_of(v, "scalar|avx2|avx512|neon"); }},
    {"no-direct-io", 0, "", "read through the page cache", kModelOptions, [](S& s, V) { s.buffered_io = true; }},
    {"io", 0, "uring|threads", "how to read (default: io_uring where it works)", kModelOptions,
     [](S& s, V v) { s.io_backend = one_of(v, "uring|threads"); }},
    {"io-depth", 0, "N", "reads kept in flight, 1 to 256 (the default is right)", kModelOptions,
     [](S& s, V v) {
       s.io_depth = whole_number(v, {1, kIoDepthMax});
     }},
    {"cache-policy", 0, "phase|vote|lru", "which experts stay in memory (default phase; vote: not in this version)",
     kModelOptions,
     [](S& s, V v) {
       s.cache_policy = one_of(v, "phase|vote|lru");
       if (v == "vote") refuse_unavailable("'vote'");
     }},
    {"lookahead", 0, "N", "experts read ahead on a guess (this version: 0)", kModelOptions,
     [](S&, V v) {
       if (whole_number(v, {0, kTokensMax}) != 0) refuse_unavailable(v);
     }},
    {"pin-layers", 0, "N", "layers whose weights, but for the experts, stay in memory (default: what fits)",
     kModelOptions,
     [](S& s, V v) {
       const uint64_t layers = whole_number(v, {0, kLayersMax});
       s.pinned_layers = layers == 0 ? -1 : static_cast<int64_t>(layers);
     }},
    {"drive", 0, "GB/s", "speed of the drive, 10^9 bytes per second, for the expected tokens per second", kPlanOptions,
     [](S& s, V v) {
       s.drive_gb_s = real_number(v, {0, kDriveSpeedMax});
     }},
    {"ram", 0, "SIZE", "memory of the machine that is meant, when it is not this one", kPlanOptions,
     [](S& s, V v) { s.ram_bytes = size_bytes(v); }},
    {"verify", 0, "", "check the checksums of a pack (not in this version)", kModelOptions, unavailable},
    {"numeric", 0, "exact|fast", "arithmetic (this version: exact)", kModelOptions,
     [](S&, V v) { only(v, "exact|fast", "exact"); }},
    {"kv", 0, "exact|qat", "how DeepSeek-V4 stores KV rows (this version: exact)", kModelOptions,
     [](S&, V v) { only(v, "exact|qat", "exact"); }},
    {"mirror", 0, "DIR", "a copy of the model on another drive (not in this version)", kModelOptions, unavailable,
     true},
    {"warm", 0, "FILE", "cache statistics to start from (not in this version)", kModelOptions, unavailable},
    {"session-dir", 0, "DIR", "where snapshots are kept (not in this version)", kModelOptions, unavailable},
    {"session-space", 0, "SIZE", "room for snapshots (not in this version)", kModelOptions, unavailable_size},
    // Made-up models.
    {"share-layers", 0, "N", "write N layers of each kind, which stand for all (default: write every layer)",
     kSynthOptions,
     [](S& s, V v) {
       s.shared_layers = whole_number(v, {1, kLayersMax});
     }},
    {"layers", 0, "L", "only the first L layers of the shape", kSynthOptions,
     [](S& s, V v) {
       s.layers = whole_number(v, {1, kLayersMax});
     }},
    {"expert-count", 0, "E", "E routed experts in a layer", kSynthOptions,
     [](S& s, V v) {
       s.expert_count = whole_number(v, {1, kExpertsMax});
     }},
    {"tensor-order", 0, "name|scattered", "order of tensors in a file: as publishers write, or drawn (default name)",
     kSynthOptions, [](S& s, V v) { s.scattered = one_of(v, "name|scattered") == "scattered"; }},
    {"routing", 0, "TRACE", "take expert ids from a trace (not in this version)", kSynthOptions, unavailable},
    {"vision-only", 0, "", "only the image tower (not in this version)", kSynthOptions, unavailable},
    // Results.
    {"json", 0, "", "machine-readable result on standard output", kJsonOption, [](S& s, V) { s.json = true; }},
    {"stats", 0, "FILE", "write the counters there as JSON when done", kStatsOption,
     [](S& s, V v) { s.stats_file = not_empty(v); }},
    {"log", 0, "error|warn|info|debug", "what to tell on standard error (default warn)", kModelOptions,
     [](S& s, V v) { s.log_level = log_level(v); }},
};

bool is_known(const Option& option, unsigned groups) {
  return (option.groups & (groups | kAllCommands)) != 0;
}

std::string spelling(const Option& option) {
  return fmt::format("{}{}", option.name.size() == 1 ? "-" : "--", option.name);
}

/// The parser would take the next word as the value of "--name=".
void refuse_empty_values(std::span<const char* const> words) {
  for (const std::string_view word : words) {
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw UsageError(fmt::format("{}: must not be empty", word.substr(0, word.size() - 1)));
    }
  }
}

CLI::Option* add_to(CLI::App& parser, const Option& option) {
  std::string names = spelling(option);
  if (option.name.size() > 1 && option.short_name != 0) names += fmt::format(",-{}", option.short_name);
  if (option.value.empty()) return parser.add_flag(names)->disable_flag_override()->take_all();
  return parser.add_option(names)->expected(1)->take_all();
}

/// Says what the parser found wrong with an option, in words of the table.
[[noreturn]] void refuse(std::string_view failure, std::span<const std::pair<const Option*, CLI::Option*>> known) {
  for (const auto& [option, parsed] : known) {
    // Messages begin with the name, with or without its dashes.
    const std::string_view name = failure.substr(failure.find_first_not_of('-'));
    if (!name.starts_with(option->name) || name.substr(option->name.size()).find_first_of(": ") != 0) continue;
    if (option->value.empty()) throw UsageError(fmt::format("{}: takes no value", spelling(*option)));
    throw UsageError(fmt::format("{}: needs a value: {}", spelling(*option), option->value));
  }
  throw UsageError(std::string(failure));
}

void apply(const Option& option, const CLI::Option& parsed, Settings& settings) {
  const size_t count = option.value.empty() ? parsed.count() : parsed.results().size();
  if (count == 0) return;
  if (count > 1 && !option.is_repeatable) throw UsageError(fmt::format("{}: given twice", spelling(option)));
  settings.given.push_back(option.name);
  try {
    if (option.value.empty()) return option.set(settings, {});
    for (const std::string& value : parsed.results()) option.set(settings, value);
  } catch (const UsageError& failure) {
    throw UsageError(fmt::format("{}: {}", spelling(option), failure.what()));
  }
}

}  // namespace

bool Settings::has(std::string_view name) const {
  return std::ranges::find(given, name) != given.end();
}

Settings parse_options(std::span<const char* const> words, unsigned groups) {
  Settings settings;
  refuse_empty_values(words);
  CLI::App parser;
  parser.set_help_flag();  // The table has its own.
  parser.allow_extras();   // Unknown options are named below.
  parser.add_option("arguments", settings.arguments);
  std::vector<std::pair<const Option*, CLI::Option*>> known;
  for (const Option& option : kOptions) {
    if (is_known(option, groups)) known.emplace_back(&option, add_to(parser, option));
  }
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    parser.parse(std::move(reversed));
  } catch (const CLI::ParseError& failure) {
    refuse(failure.what(), known);
  }
  for (const std::string& word : parser.remaining()) {
    if (word != "--") throw UsageError(fmt::format("unknown option {}", word.substr(0, word.find('='))));
  }
  for (const auto& [option, parsed] : known) apply(*option, *parsed, settings);
  return settings;
}

std::string options_help(unsigned groups) {
  constexpr size_t kColumn = 34;
  std::string help;
  for (const Option& option : kOptions) {
    if (!is_known(option, groups)) continue;
    std::string left = "  " + spelling(option);
    if (option.short_name != 0 && option.name.size() > 1) left += fmt::format(", -{}", option.short_name);
    if (!option.value.empty()) left += fmt::format(" {}", option.value);
    help += left.size() < kColumn ? fmt::format("{:<{}}{}\n", left, kColumn, option.help)
                                  : fmt::format("{}\n{:<{}}{}\n", left, "", kColumn, option.help);
  }
  return help;
}

}  // namespace headrace::cli
