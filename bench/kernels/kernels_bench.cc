#include <benchmark/benchmark.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/float_environment.h"
#include "kernels/dispatch.h"
#include "matrix_pool.h"
#include "plain_read.h"

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

/// Vectors as the engine has them: rows that begin at a cache line.
class Vectors {
 public:
  Vectors(size_t rows, size_t cols, float value) {
    matrix_ = Matrix<float>::allocate(budget_, rows, cols, "vectors").take_value();
    for (size_t row = 0; row < rows; ++row) std::ranges::fill(matrix_.row(row), value);
  }
  MatrixView<float> view() const { return matrix_.view(); }
  std::span<float> row(size_t index) const { return matrix_.row(index); }

 private:
  Budget budget_{SIZE_MAX};
  Matrix<float> matrix_;
};

void count_operations(benchmark::State& state, size_t per_iteration) {
  const auto total = static_cast<double>(per_iteration * state.iterations());
  state.counters["flop/s"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
}

/// Products with `tokens` vectors. Bytes are packed weights and scales.
void multiply(benchmark::State& state, const Kernels& kernels, const Shape& shape, size_t tokens, Source source) {
  const FloatEnvironment environment;
  MatrixPool pool(shape.format, shape.rows, shape.cols, pool_bytes(source));
  const Vectors x(tokens, shape.cols, 0.5F);
  const Vectors y(tokens, shape.rows, 0.0F);
  const auto multiply_matrix = kernels.matmul[static_cast<size_t>(shape.format)];
  for (auto _ : state) {
    multiply_matrix(pool.next(), x.view(), y.view());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * pool.matrix_bytes()));
  count_operations(state, 2 * shape.rows * shape.cols * tokens);
}

/// Several heads in turn, as a layer has them: their states do not stay in the first cache.
void step_delta_rule(benchmark::State& state, const Kernels& kernels, size_t heads) {
  const FloatEnvironment environment;
  constexpr size_t kWidth = 128;
  const Vectors states(heads * kWidth, kWidth, 0.01F);
  const Vectors vector(1, kWidth, 0.09F);
  const Vectors decay(1, kWidth, 0.9F);
  const Vectors out(1, kWidth, 0.0F);
  size_t head = 0;
  for (auto _ : state) {
    kernels.delta_rule(
        {.q = vector.row(0), .k = vector.row(0), .v = vector.row(0), .decay = decay.row(0), .beta = 0.5F},
        states.view().row_range(head * kWidth, kWidth), out.row(0));
    head = (head + 1) % heads;
    benchmark::ClobberMemory();
  }
  // Decay, two products with the state, one update.
  count_operations(state, 7 * kWidth * kWidth);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kWidth * kWidth * sizeof(float)));
}

/// The latent cache of one layer against the heads of one token: scores, or the weighted sum.
void weigh_latents(benchmark::State& state, const Kernels& kernels, size_t heads, bool transposed) {
  const FloatEnvironment environment;
  constexpr size_t kPositions = 1024;
  constexpr size_t kWidth = 512;
  const Vectors latents(kPositions, kWidth, 0.25F);
  const Vectors wide(heads, kWidth, 0.5F);
  const Vectors scores(heads, kPositions, 0.5F);
  const MatrixView<float> cache = latents.view();
  const WeightView weights = float_weights(cache.data(), kPositions, kWidth, cache.stride());
  for (auto _ : state) {
    if (transposed) {
      kernels.matmul_transposed[static_cast<size_t>(Format::kF32)](weights, scores.view(), wide.view());
    } else {
      kernels.matmul[static_cast<size_t>(Format::kF32)](weights, wide.view(), scores.view());
    }
    benchmark::ClobberMemory();
  }
  count_operations(state, 2 * heads * kWidth * kPositions);
}

enum class Function { kSitu, kSwiGlu, kRmsNorm, kSoftmax, kDecayUnbounded };

void run_function(benchmark::State& state, const Kernels& kernels, Function function) {
  const FloatEnvironment environment;
  constexpr size_t kCount = 7168;
  const Vectors vectors(3, kCount, 0.0F);
  const std::span<float> a = vectors.row(0);
  const std::span<float> b = vectors.row(1);
  const std::span<float> out = vectors.row(2);
  for (size_t i = 0; i < kCount; ++i) a[i] = b[i] = static_cast<float>(i % 97) * 0.1F - 5.0F;
  for (auto _ : state) {
    if (function == Function::kSitu) kernels.situ(a, b, 4.0F, 25.0F, out);
    if (function == Function::kSwiGlu) kernels.swiglu(a, b, out);
    if (function == Function::kRmsNorm) kernels.rms_norm(a, b, 1e-5F, out);
    if (function == Function::kSoftmax) kernels.softmax(a, 1.0F, out);
    if (function == Function::kDecayUnbounded) kernels.decay_unbounded(a, b, 1.0F, out);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kCount));
}

struct NamedFunction {
  const char* name;
  Function function;
};
constexpr NamedFunction kFunctions[] = {{"situ", Function::kSitu},
                                        {"swiglu", Function::kSwiGlu},
                                        {"rms_norm", Function::kRmsNorm},
                                        {"softmax", Function::kSoftmax},
                                        {"decay_unbounded", Function::kDecayUnbounded}};

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
  for (const size_t heads : {1, 32}) {
    const std::string name = table + "/heads_" + std::to_string(heads);
    benchmark::RegisterBenchmark(("scores/" + name).c_str(), weigh_latents, *kernels, heads, false);
    benchmark::RegisterBenchmark(("weighted_sum/" + name).c_str(), weigh_latents, *kernels, heads, true);
  }
  for (const NamedFunction& named : kFunctions) {
    benchmark::RegisterBenchmark((named.name + ("/" + table)).c_str(), run_function, *kernels, named.function);
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
