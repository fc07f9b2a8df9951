#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/ensure.h"

namespace headrace {
namespace {

// Sorted prefix that top_p looks at first, and its growth while that has too little probability. Trained models rarely
// need more than the first.
constexpr size_t kHeadTokens = 64;
constexpr size_t kHeadGrowth = 8;

using Candidates = std::span<SampleCandidate>;

/// Most probable first; a total order, so that every sorting algorithm gives the same result.
bool is_better(const SampleCandidate& a, const SampleCandidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
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
    scratch[id] = {.logit = logits[id], .id = static_cast<int32_t>(id)};
  }
  return scratch.first(logits.size());
}

void sort_head(Candidates tokens, size_t count) {
  const auto head_end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < tokens.size()) std::nth_element(tokens.begin(), head_end, tokens.end(), is_better);
  std::sort(tokens.begin(), head_end, is_better);
}

double total_weight(Candidates tokens) {
  double total = 0;
  for (const SampleCandidate& token : tokens) total += token.weight;
  return total;
}

/// The fewest most probable of `tokens` whose weights reach `share` of all; sorts the front of `tokens`.
Candidates keep_share(Candidates tokens, double share, bool is_sorted) {
  const double wanted = share * total_weight(tokens);
  for (size_t head = is_sorted ? tokens.size() : std::min(kHeadTokens, tokens.size());; head *= kHeadGrowth) {
    head = std::min(head, tokens.size());
    if (!is_sorted) sort_head(tokens, head);
    double sum = 0;
    for (size_t count = 0; count < head; ++count) {
      sum += tokens[count].weight;
      if (sum >= wanted) return tokens.first(count + 1);
    }
    if (head == tokens.size()) return tokens;
  }
}

/// `weights` are relative to the best token's, which is 1.
Candidates keep_min_share(Candidates tokens, double share) {
  const auto kept = std::remove_if(tokens.begin(), tokens.end(),
                                   [share](const SampleCandidate& token) { return token.weight < share; });
  return tokens.first(static_cast<size_t>(kept - tokens.begin()));
}

int32_t draw(Candidates tokens, double uniform) {
  const double target = uniform * total_weight(tokens);
  double sum = 0;
  int32_t last_id = tokens.front().id;
  for (const SampleCandidate& token : tokens) {
    if (token.weight == 0) continue;
    sum += token.weight;
    last_id = token.id;
    if (sum > target) break;
  }
  return last_id;  // Rounding may leave `target` at the sum: then the last that has a probability.
}

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return error(Code::kArgument, "temperature %g is not a number from 0 up", options.temperature);
  }
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    return error(Code::kArgument, "top_p %g is not a number from 0 to 1", options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return error(Code::kArgument, "min_p %g is not a number from 0 to 1", options.min_p);
  }
  return {};
}

Result<int32_t> sample_token(std::span<const float> logits, const SamplingOptions& options, uint64_t position,
                             std::span<SampleCandidate> scratch) {
  ENSURE(scratch.size() >= logits.size());
  const int32_t best = TRY(best_token(logits));
  if (options.temperature == 0 || options.top_k == 1) return best;
  Candidates tokens = list_tokens(logits, scratch);
  const bool has_top_k = options.top_k > 0 && options.top_k < tokens.size();
  if (has_top_k) {
    sort_head(tokens, options.top_k);
    tokens = tokens.first(options.top_k);
  }
  const double best_logit = logits[static_cast<size_t>(best)];
  for (SampleCandidate& token : tokens)
    token.weight = exp_nonpositive((token.logit - best_logit) / options.temperature);
  if (options.top_p < 1) tokens = keep_share(tokens, options.top_p, has_top_k);
  if (options.min_p > 0) tokens = keep_min_share(tokens, options.min_p);
  // Back to ascending ids, so that a draw does not depend on which filters had to sort.
  if (has_top_k || options.top_p < 1) {
    std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
  return draw(tokens, uniform_at(options.seed, position));
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
