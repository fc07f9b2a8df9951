#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/float_environment.h"
#include "kernels/dispatch.h"
#include "kernels/matrix_pool.h"
#include "kernels/plain_read.h"

namespace headrace::bench {
namespace {

enum class Source { kCache, kDram };

size_t pool_bytes(Source source) {
  return source == Source::kDram ? kFromDramBytes : 0;
}

void read_matrix(benchmark::State& state, const Shape& shape, Source source) {
  MatrixPool pool(shape.format, shape.rows, shape.cols, pool_bytes(source));
  for (auto _ : state) benchmark::DoNotOptimize(plain_read(pool.bytes_of(pool.next())));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * pool.matrix_bytes()));
}

/// Products with `tokens` vectors. Bytes are packed weights and scales.
void multiply(benchmark::State& state, const Kernels& kernels, const Shape& shape, size_t tokens, Source source) {
  const FloatEnvironment environment;
  MatrixPool pool(shape.format, shape.rows, shape.cols, pool_bytes(source));
  const std::vector<float> x(tokens * shape.cols, 0.5F);
  std::vector<float> y(tokens * shape.rows);
  const auto multiply_matrix = kernels.matmul[static_cast<size_t>(shape.format)];
  for (auto _ : state) {
    multiply_matrix(pool.next(), MatrixView<const float>(x.data(), tokens, shape.cols),
                    MatrixView<float>(y.data(), tokens, shape.rows));
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * pool.matrix_bytes()));
  const double operations = 2.0 * static_cast<double>(shape.rows * shape.cols * tokens * state.iterations());
  state.counters["flop/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

/// Several heads in turn, as a layer has them: their states do not stay in the first cache.
void step_delta_rule(benchmark::State& state, const Kernels& kernels, size_t heads) {
  const FloatEnvironment environment;
  constexpr size_t kWidth = 128;
  std::vector<float> memory(heads * kWidth * kWidth, 0.01F);
  const std::vector<float> vector(kWidth, 0.09F);
  const std::vector<float> decay(kWidth, 0.9F);
  std::vector<float> out(kWidth);
  size_t head = 0;
  for (auto _ : state) {
    kernels.delta_rule({.q = vector, .k = vector, .v = vector, .decay = decay, .beta = 0.5F},
                       MatrixView<float>(memory.data() + head * kWidth * kWidth, kWidth, kWidth), out);
    head = (head + 1) % heads;
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  // Decay, two products with the state, one update.
  const double operations = 7.0 * static_cast<double>(kWidth * kWidth * state.iterations());
  state.counters["flop/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kWidth * kWidth * sizeof(float)));
}

/// The latent cache of one layer against 32 heads: scores, and the weighted sum.
void weigh_latents(benchmark::State& state, const Kernels& kernels, size_t positions, bool transposed) {
  const FloatEnvironment environment;
  constexpr size_t kHeads = 32;
  constexpr size_t kWidth = 512;
  const std::vector<float> latents(positions * kWidth, 0.25F);
  std::vector<float> wide(kHeads * kWidth, 0.5F);
  std::vector<float> scores(kHeads * positions, 0.5F);
  const WeightView weights = float_weights(latents.data(), positions, kWidth, kWidth);
  const MatrixView<float> wide_view(wide.data(), kHeads, kWidth);
  const MatrixView<float> score_view(scores.data(), kHeads, positions);
  for (auto _ : state) {
    if (transposed) {
      kernels.matmul_transposed[static_cast<size_t>(Format::kF32)](weights, score_view, wide_view);
    } else {
      kernels.matmul[static_cast<size_t>(Format::kF32)](weights, wide_view, score_view);
    }
    benchmark::ClobberMemory();
  }
  const double operations = 2.0 * static_cast<double>(kHeads * kWidth * positions * state.iterations());
  state.counters["flop/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

void run_elementwise(benchmark::State& state, const Kernels& kernels, const std::string& which) {
  const FloatEnvironment environment;
  constexpr size_t kCount = 7168;
  std::vector<float> a(kCount);
  for (size_t i = 0; i < kCount; ++i) a[i] = static_cast<float>(i % 97) * 0.1F - 5.0F;
  const std::vector<float> b = a;
  std::vector<float> out(kCount);
  for (auto _ : state) {
    if (which == "situ") kernels.situ(a, b, 4.0F, 25.0F, out);
    if (which == "swiglu") kernels.swiglu(a, b, out);
    if (which == "rms_norm") kernels.rms_norm(a, b, 1e-5F, out);
    if (which == "softmax") kernels.softmax(a, 1.0F, out);
    if (which == "decay_unbounded") kernels.decay_unbounded(a, b, 1.0F, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kCount));
}

void register_table(const Kernels* kernels) {
  const std::string table = kernels->name;
  for (const Shape& shape : kShapes) {
    const std::string name = table + "/" + shape.name;
    for (const size_t tokens : {1, 2, 4, 8, 64}) {
      benchmark::RegisterBenchmark(("matmul/" + name + "/tokens_" + std::to_string(tokens) + "/cache").c_str(),
                                   multiply, *kernels, shape, tokens, Source::kCache);
    }
    benchmark::RegisterBenchmark(("matmul/" + name + "/tokens_1/dram").c_str(), multiply, *kernels, shape, 1,
                                 Source::kDram);
  }
  for (const size_t heads : {1, 32}) {
    benchmark::RegisterBenchmark(("delta_rule/" + table + "/heads_" + std::to_string(heads)).c_str(), step_delta_rule,
                                 *kernels, heads);
  }
  for (const bool transposed : {false, true}) {
    benchmark::RegisterBenchmark((std::string(transposed ? "weighted_sum/" : "scores/") + table).c_str(), weigh_latents,
                                 *kernels, 2048, transposed);
  }
  for (const char* which : {"situ", "swiglu", "rms_norm", "softmax", "decay_unbounded"}) {
    benchmark::RegisterBenchmark((std::string(which) + "/" + table).c_str(), run_elementwise, *kernels, which);
  }
}

bool register_all() {
  for (const Shape& shape : kShapes) {
    const std::string name = std::string("plain_read/") + shape.name;
    benchmark::RegisterBenchmark((name + "/cache").c_str(), read_matrix, shape, Source::kCache);
    benchmark::RegisterBenchmark((name + "/dram").c_str(), read_matrix, shape, Source::kDram);
  }
  for (const Kernels* kernels : usable_kernels()) register_table(kernels);
  return true;
}
const bool kRegistered = register_all();

}  // namespace
}  // namespace headrace::bench

BENCHMARK_MAIN();
