#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/evaluation.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/open_model.h"
#include "cli/perplexity.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "cli/text_source.h"
#include "headrace/headrace.hpp"

namespace headrace::cli::cmd {
namespace {

constexpr size_t kTopDefault = 10;
/// Rows of logits computed together when all are wanted: enough to share the reads of a sweep, few enough that a large
/// vocabulary costs only some megabytes.
constexpr size_t kLogitsRows = 16;

static_assert(std::endian::native == std::endian::little, "--logits-bin writes float32 as they lie in memory");

void check_settings(const Settings& settings) {
  for (const char* name : {"n", "stop", "top-p", "top-k", "min-p", "seed"}) {
    if (!settings.has(name)) continue;
    throw UsageError(fmt::format("-{}{}: eval does not generate text", std::strlen(name) > 1 ? "-" : "", name));
  }
  if (settings.has("system")) throw UsageError("--system: eval reads plain text, not conversations");
  if (!settings.think.empty() && settings.think != "off") {
    throw UsageError("--think: eval reads plain text, not conversations; only off is allowed");
  }
  if (settings.temperature != 0) throw UsageError("--temp: eval does not generate; only 0 is allowed");
  if (!settings.ids.empty() && (settings.arguments.size() > 1 || !settings.file.empty())) {
    throw UsageError("--ids are the tokens; they stand alone, without TEXT and --file");
  }
  if (!settings.json && (!settings.logits.empty() || settings.trace_experts) && settings.logits_file.empty()) {
    throw UsageError("--logits and --trace-experts need --json, or --logits-bin for the logits");
  }
  if (settings.perplexity &&
      (settings.top > 0 || settings.trace_experts || settings.has("logits") || settings.has("logits-bin"))) {
    throw UsageError("--perplexity stands alone, without --top, --logits, --logits-bin and --trace-experts");
  }
}

std::vector<int32_t> evaluated_ids(const Settings& settings, const api::Model& model, const std::string& text) {
  std::vector<int32_t> ids = settings.ids;
  if (ids.empty()) {
    if (!model.has_tokenizer()) throw UsageError("this model folder has no tokenizer; give the tokens with --ids");
    ids = model.tokenizer().tokenize(text, api::TextKind::kPlain);
  }
  if (ids.empty()) throw UsageError("the text is empty");
  return ids;
}

std::string token_text(const api::Model& model, int32_t id) {
  if (!model.has_tokenizer()) return "";
  try {
    return model.tokenizer().detokenize({&id, 1});
  } catch (const api::Error&) {
    return "";  // A model's vocabulary may be larger than its tokenizer's.
  }
}

/// What is collected, and written, while the tokens are evaluated.
class Report {
 public:
  explicit Report(const Settings& settings) : settings_(settings) {
    if (!settings.logits_file.empty()) logits_file_.emplace(settings.logits_file);
    has_json_logits_ = settings.json && !settings.logits.empty() && !logits_file_;
    top_ = settings.top;
    const bool asks_nothing = settings.logits.empty() && !logits_file_ && !settings.trace_experts;
    if (top_ == 0 && asks_nothing) top_ = kTopDefault;
  }

  bool all_logits() const { return settings_.logits == "all"; }

  /// Takes a result in. Nothing is written before the first one: ids that are refused leave no half object behind.
  void add(std::span<const int32_t> ids, const headrace_token_result& token, size_t vocabulary_size) {
    if (!has_begun_) begin(ids);
    if (token.logits) add_logits({token.logits, vocabulary_size});
    if (settings_.trace_experts) add_experts(token);
  }

  void end(const api::Model& model) {
    const std::vector<NextToken> next = most_probable(last_logits_, top_);
    if (logits_file_) logits_file_->commit();
    if (!settings_.json) return print_table(model, next);
    if (has_json_logits_) write_stdout("]");
    if (settings_.trace_experts) write_stdout(fmt::format(",\"experts\":[{}]", experts_));
    if (top_ > 0) write_stdout(fmt::format("{}\"next\":[{}]", has_keys_ ? "," : "", next_json(model, next)));
    write_stdout("}\n");
  }

 private:
  void begin(std::span<const int32_t> ids) {
    has_begun_ = true;
    if (!settings_.json) return;
    const bool has_tokens = has_json_logits_ || logits_file_ || settings_.trace_experts;
    write_stdout(has_tokens ? fmt::format("{{\"tokens\":{}", json_ids(ids)) : "{");
    has_keys_ = has_tokens;
    if (has_json_logits_) write_stdout(",\"logits\":[");
  }

  void add_logits(std::span<const float> logits) {
    if (has_json_logits_) write_stdout((row_count_ == 0 ? "" : ",") + json_floats(logits));
    if (logits_file_) logits_file_->write({reinterpret_cast<const char*>(logits.data()), logits.size_bytes()});
    if (top_ > 0) last_logits_.assign(logits.begin(), logits.end());
    ++row_count_;
  }

  void add_experts(const headrace_token_result& token) {
    experts_ += experts_.empty() ? "[" : ",[";
    for (size_t i = 0; i < token.routed_count; ++i) {
      const headrace_routed_experts& layer = token.routed[i];
      const std::vector<int32_t> ids(layer.experts, layer.experts + layer.count);
      experts_ += fmt::format("{}[{},{},{}]", i == 0 ? "" : ",", layer.layer, json_ids(ids),
                              json_floats({layer.weights, layer.count}));
    }
    experts_ += "]";
  }

  static std::string next_json(const api::Model& model, std::span<const NextToken> next) {
    std::string text;
    for (const NextToken& token : next) {
      text += fmt::format("{}{{\"id\":{},\"text\":{},\"logprob\":{}}}", text.empty() ? "" : ",", token.id,
                          json_string(token_text(model, token.id)), token.logprob);
    }
    return text;
  }

  static void print_table(const api::Model& model, std::span<const NextToken> next) {
    if (next.empty()) return;
    std::string table = fmt::format("{:>8}  {:>11}  {:>9}  text\n", "id", "probability", "logprob");
    for (const NextToken& token : next) {
      table += fmt::format("{:>8}  {:>10.4f}%  {:>9.4f}  {}\n", token.id, 100 * std::exp(token.logprob), token.logprob,
                           json_string(token_text(model, token.id)));
    }
    write_stdout(table);
  }

  const Settings& settings_;
  std::optional<AtomicFile> logits_file_;
  bool has_begun_ = false;
  bool has_json_logits_ = false;
  bool has_keys_ = false;
  size_t top_ = 0;
  size_t row_count_ = 0;
  std::vector<float> last_logits_;
  std::string experts_;
};

void evaluate(const Settings& settings, const api::Model& model, api::Session& session, std::span<const int32_t> ids) {
  Report report(settings);
  api::EvaluateOptions options;
  options.all_logits = report.all_logits();
  options.routing = settings.trace_experts;
  PromptProgress progress;
  options.on_progress = progress.callback();
  const size_t vocabulary_size = model.vocabulary_size();
  session.evaluate(ids, options, [&](const headrace_token_result& token) {
    report.add(ids, token, vocabulary_size);
    return true;
  });
  report.end(model);
}

}  // namespace

ExitStatus eval(const Settings& settings) {
  check_settings(settings);
  const size_t bytes_max = settings.perplexity ? kTextBytesMax : prompt_bytes_max(settings);
  const std::string text = settings.ids.empty() ? text_from(settings, 1, bytes_max) : std::string();
  check_stats_file(settings);
  api::Model model = open_model(settings, settings.logits == "all" || settings.perplexity ? kLogitsRows : 1);
  const std::vector<int32_t> ids = evaluated_ids(settings, model, text);
  api::Session session = model.create_session();
  const InterruptTarget interrupt(session.handle());
  if (settings.perplexity) {
    write_stdout(perplexity_report(model, session, ids, settings.json));
  } else {
    evaluate(settings, model, session, ids);
  }
  const std::string stats = session.stats_json();
  if (!settings.json) tell(statistics_line(stats));
  write_stats_file(settings, stats);
  return kDone;
}

}  // namespace headrace::cli::cmd
