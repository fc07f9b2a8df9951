#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/ensure.h"
#include "engine/logit_adjustment.h"

namespace headrace {
namespace {

// Sorted prefix that top_p looks at first, and its growth while that has too little probability. Trained models rarely
// need more than the first.
constexpr size_t kHeadTokens = 64;
constexpr size_t kHeadGrowth = 8;

using Candidates = std::span<SampleCandidate>;

/// Most probable first, by logits; a total order, so that every sorting algorithm gives the same result.
bool is_better(const SampleCandidate& a, const SampleCandidate& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

Result<int32_t> best_token(std::span<const float> logits) {
  size_t best = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    // Catches NaN too.
    if (!(logits[id] < std::numeric_limits<float>::infinity())) {
      return error(Code::kFormat, "the logit of token %zu is not a finite number", id);
    }
    if (logits[id] > logits[best]) best = id;
  }
  if (logits.empty() || std::isinf(logits[best])) return error(Code::kFormat, "no token has a finite logit");
  return static_cast<int32_t>(best);
}

/// All tokens in ascending id.
Candidates list_tokens(std::span<const float> logits, Candidates scratch) {
  for (size_t id = 0; id < logits.size(); ++id) {
    scratch[id] = {.value = logits[id], .id = static_cast<int32_t>(id)};
  }
  return scratch.first(logits.size());
}

/// The first of the greatest of `tokens`, which are in ascending id.
Result<SampleCandidate> best_adjusted(Candidates tokens) {
  const SampleCandidate best = *std::min_element(tokens.begin(), tokens.end(), is_better);
  if (!std::isinf(best.value)) return best;
  return error(Code::kArgument, "logit_bias bans every token that the model allows here");
}

void sort_head(Candidates tokens, size_t count) {
  const auto head_end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < tokens.size()) std::nth_element(tokens.begin(), head_end, tokens.end(), is_better);
  std::sort(tokens.begin(), head_end, is_better);
}

/// Probability of a logit relative to the best one's.
struct Weigher {
  double best_logit;
  double temperature;

  double operator()(const SampleCandidate& token) const {
    return exp_nonpositive((token.value - best_logit) / temperature);
  }
};

/// Logits become weights.
void weigh(Candidates tokens, const Weigher& weigher) {
  for (SampleCandidate& token : tokens) token.value = weigher(token);
}

double total_weight(Candidates tokens) {
  double total = 0;
  for (const SampleCandidate& token : tokens) total += token.value;
  return total;
}

/// The fewest most probable of `tokens`, which have logits, that reach `share` of all; sorts the front of `tokens`.
Candidates keep_share(Candidates tokens, double share, const Weigher& weigher, bool is_sorted) {
  double total = 0;
  for (const SampleCandidate& token : tokens) total += weigher(token);
  const double wanted = share * total;
  for (size_t head = is_sorted ? tokens.size() : std::min(kHeadTokens, tokens.size());; head *= kHeadGrowth) {
    head = std::min(head, tokens.size());
    if (!is_sorted) sort_head(tokens, head);
    double sum = 0;
    for (size_t count = 0; count < head; ++count) {
      sum += weigher(tokens[count]);
      if (sum >= wanted) return tokens.first(count + 1);
    }
    if (head == tokens.size()) return tokens;
  }
}

Candidates keep_min_share(Candidates tokens, double share) {
  const auto kept = std::remove_if(tokens.begin(), tokens.end(),
                                   [share](const SampleCandidate& token) { return token.value < share; });
  return tokens.first(static_cast<size_t>(kept - tokens.begin()));
}

int32_t draw(Candidates tokens, double uniform) {
  const double target = uniform * total_weight(tokens);
  double sum = 0;
  int32_t last_id = tokens.front().id;
  for (const SampleCandidate& token : tokens) {
    if (token.value == 0) continue;
    sum += token.value;
    last_id = token.id;
    if (sum > target) break;
  }
  return last_id;  // Rounding may leave `target` at the sum: then the last that has a probability.
}

/// Draws from `tokens`, all in ascending id.
int32_t draw_filtered(Candidates tokens, const SamplingOptions& options, const Weigher& weigher, double uniform) {
  const bool has_top_k = options.top_k > 0 && options.top_k < tokens.size();
  if (has_top_k) {
    sort_head(tokens, options.top_k);
    tokens = tokens.first(options.top_k);
  }
  if (options.top_p < 1) tokens = keep_share(tokens, options.top_p, weigher, has_top_k);
  weigh(tokens, weigher);
  if (options.min_p > 0) tokens = keep_min_share(tokens, options.min_p);
  // Back to ascending ids, so that a draw does not depend on which filters had to sort.
  if (has_top_k || options.top_p < 1) {
    std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
  return draw(tokens, uniform);
}

Status check_range(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return {};  // NaN is not.
  return error(Code::kArgument, "%s %g is not a number from %g to %g", name, value, least, most);
}

Status check_biases(const std::vector<LogitBias>& biases, size_t vocabulary_size) {
  if (biases.size() > SamplingOptions::kBiasesMax) {
    return error(Code::kArgument, "logit_bias has %zu entries; at most %zu are allowed", biases.size(),
                 SamplingOptions::kBiasesMax);
  }
  std::vector<int32_t> ids;
  for (const LogitBias& bias : biases) {
    if (bias.id < 0 || static_cast<size_t>(bias.id) >= vocabulary_size) {
      return error(Code::kArgument, "logit_bias: token id %d is outside the vocabulary of %zu", bias.id,
                   vocabulary_size);
    }
    const bool is_minus_infinity = std::isinf(bias.bias) && bias.bias < 0;
    if (!is_minus_infinity) TRY(check_range("logit_bias", bias.bias, LogitBias::kBan, LogitBias::kMost));
    ids.push_back(bias.id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return error(Code::kArgument, "logit_bias has token id %d twice", *twice);
}

}  // namespace

Status check_sampling(const SamplingOptions& options, size_t vocabulary_size) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return error(Code::kArgument, "temperature %g is not a number from 0 up", options.temperature);
  }
  TRY(check_range("top_p", options.top_p, 0, 1));
  TRY(check_range("min_p", options.min_p, 0, 1));
  TRY(check_range("repetition_penalty", options.repetition_penalty, SamplingOptions::kRepetitionLeast,
                  SamplingOptions::kRepetitionMost));
  constexpr double kMost = SamplingOptions::kPenaltyMost;
  TRY(check_range("frequency_penalty", options.frequency_penalty, -kMost, kMost));
  TRY(check_range("presence_penalty", options.presence_penalty, -kMost, kMost));
  return check_biases(options.logit_bias, vocabulary_size);
}

Result<int32_t> sample_token(std::span<const float> logits, const SamplingOptions& options, const SamplingPlace& place,
                             std::span<SampleCandidate> scratch) {
  ENSURE(scratch.size() >= logits.size());
  const int32_t best_raw = TRY(best_token(logits));
  const bool is_greedy = options.temperature == 0 || options.top_k == 1;
  const bool is_adjusted = adjusts_logits(options);
  if (is_greedy && !is_adjusted) return best_raw;
  const Candidates tokens = list_tokens(logits, scratch);
  SampleCandidate best = tokens[static_cast<size_t>(best_raw)];
  if (is_adjusted) {
    adjust_logits(options, place, tokens);
    best = TRY(best_adjusted(tokens));
  }
  if (is_greedy) return best.id;
  return draw_filtered(tokens, options, {best.value, options.temperature}, uniform_at(options.seed, place.position));
}

double uniform_at(uint64_t seed, uint64_t position) {
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;
  const auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  };
  // The seed is mixed first: neighbouring seeds would otherwise give one sequence, shifted.
  const uint64_t bits = mix(mix(seed + kGamma) + (position + 1) * kGamma);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double exp_nonpositive(double x) {
  DEBUG_ENSURE(!(x > 0));
  if (!(x >= -700)) return 0;  // Far above the subnormal range, so that 2^n below is a normal number.
  constexpr double kLog2E = 0x1.71547652b82fep0;
  // ln 2 in two parts: the first ends in 21 zero bits, so its product with n (10 bits) is exact.
  constexpr double kLn2High = 0x1.62e42feep-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double n = std::floor(x * kLog2E + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor series to r^13 on |r| <= 0.347: the rest is below 5e-18.
  double sum = 1;
  for (int k = 13; k >= 1; --k) sum = 1 + sum * r / k;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

}  // namespace headrace
