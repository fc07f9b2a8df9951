#include "cli/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "cli/evaluation.h"
#include "cli/exit_status.h"

namespace headrace::cli {
namespace {

struct Score {
  size_t tokens = 0;
  size_t bytes = 0;
  double nll = 0;  // Natural logarithm.
};

void score_window(const api::Model& model, api::Session& session, std::span<const int32_t> window, Score& score) {
  api::EvaluateOptions options;
  options.all_logits = true;
  session.reset();
  session.evaluate(window, options, [&](const headrace_token_result& token) {
    if (token.index + 1 < window.size()) {
      score.nll -= log_probability({token.logits, model.vocabulary_size()}, window[token.index + 1]);
    }
    return true;
  });
  score.tokens += window.size() - 1;
  if (model.has_tokenizer()) score.bytes += model.tokenizer().detokenize(window.subspan(1)).size();
}

}  // namespace

std::string perplexity_report(const api::Model& model, api::Session& session, std::span<const int32_t> ids, bool json) {
  const size_t context = nlohmann::json::parse(model.plan_json())["ctx"];
  if (ids.size() < 2 || context < 2)
    throw UsageError("--perplexity needs at least two tokens, and --ctx of at least 2");
  Score score;
  for (size_t first = 0; first < ids.size(); first += context) {
    score_window(model, session, ids.subspan(first, std::min(context, ids.size() - first)), score);
  }
  const double per_token = score.nll / static_cast<double>(score.tokens);
  nlohmann::ordered_json bits_per_byte;
  if (score.bytes > 0) bits_per_byte = score.nll / std::numbers::ln2 / static_cast<double>(score.bytes);
  const nlohmann::ordered_json result = {
      {"tokens", score.tokens},     {"bytes", score.bytes},           {"nll_per_token", per_token},
      {"ppl", std::exp(per_token)}, {"bits_per_byte", bits_per_byte}, {"ctx", context},
      {"stride", context},
  };
  if (json) return result.dump() + "\n";
  return fmt::format("{} tokens scored in windows of {}: {:.4f} nats per token, perplexity {:.4f}\n", score.tokens,
                     context, per_token, std::exp(per_token));
}

}  // namespace headrace::cli
