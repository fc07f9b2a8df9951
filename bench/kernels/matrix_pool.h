#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "formats/format.h"

namespace headrace::bench {

/// Matrices of one shape in one allocation, to be used in turn: one of them stays in cache, many come from DRAM.
class MatrixPool {
 public:
  /// As many matrices as fit into `total_bytes`, at least one.
  MatrixPool(Format format, size_t rows, size_t cols, size_t total_bytes);

  const WeightView& next() { return views_[next_++ % views_.size()]; }
  /// Weights and scales of one matrix.
  size_t matrix_bytes() const { return matrix_bytes_; }
  std::span<const std::byte> bytes_of(const WeightView& view) const { return {view.data, matrix_bytes_}; }

 private:
  Budget budget_{SIZE_MAX};
  AlignedMemory memory_;
  size_t matrix_bytes_ = 0;
  std::vector<WeightView> views_;
  size_t next_ = 0;
};

/// What cycles through more than the last cache of any machine we measure on.
inline constexpr size_t kFromDramBytes = size_t{256} << 20;

struct Shape {
  Format format;
  size_t rows;
  size_t cols;
  const char* name;
};

/// Matrices of Kimi K3 and Kimi-Linear.
inline constexpr Shape kShapes[] = {
    {Format::kMxfp4, 3072, 3584, "MXFP4_3072x3584"}, {Format::kMxfp4, 3584, 3072, "MXFP4_3584x3072"},
    {Format::kBf16, 2304, 4096, "BF16_2304x4096"},   {Format::kBf16, 1024, 2304, "BF16_1024x2304"},
    {Format::kF16, 1024, 2304, "F16_1024x2304"},     {Format::kF32, 1024, 2304, "F32_1024x2304"},
};

}  // namespace headrace::bench
