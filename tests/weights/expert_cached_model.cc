#include "weights/expert_cached_model.h"

#include <gtest/gtest.h>

#include <numeric>

namespace headrace::test {

void CachedModel::expect_written(const ExpertLease& lease) const {
  const std::vector<std::string> names = model.tensor_names(lease.id());
  size_t next = 0;
  for (size_t matrix = 0; matrix < 3; ++matrix) {
    const WeightView view = lease.matrix(matrix);
    const ExpertMatrixShape shape = model.layout().matrices[matrix];
    ASSERT_EQ(view.format, shape.format);
    ASSERT_EQ(view.rows, shape.rows);
    ASSERT_EQ(view.cols, shape.cols);
    ASSERT_EQ(stored_data(view), model.tensor_bytes(names[next])) << names[next];
    ++next;
    if (!model.options.mxfp4) {
      ASSERT_EQ(view.scales, nullptr);
      continue;
    }
    ASSERT_EQ(stored_scales(view), model.tensor_bytes(names[next])) << names[next];
    ++next;
  }
}

std::vector<ExpertModelOptions> expert_arrangements() {
  std::vector<ExpertModelOptions> all;
  for (const bool mxfp4 : {true, false}) {
    for (const size_t block : {1u, 512u, 4096u, 16'384u}) {
      for (const uint64_t seed : {0u, 1u, 2u, 3u}) {
        for (const size_t row_factor : {1u, 20u}) {
          all.push_back({.mxfp4 = mxfp4,
                         .block_bytes = block,
                         .scatter_seed = seed,
                         .file_count = 1 + seed % 3,
                         .row_factor = row_factor});
        }
      }
    }
  }
  // Files of a folder may lie on different drives: blocks of 512 and 4096, or direct beside buffered.
  for (const uint64_t seed : {4u, 5u, 6u}) {
    all.push_back({.block_bytes = 512, .other_block_bytes = 4096, .scatter_seed = seed, .file_count = 3});
    all.push_back({.block_bytes = 16'384, .other_block_bytes = 1, .scatter_seed = seed, .file_count = 2});
  }
  return all;
}

std::vector<ReadBackendKind> usable_backends() {
  std::vector<ReadBackendKind> usable;
  for (const ReadBackendKind kind : {ReadBackendKind::kThreads, ReadBackendKind::kUring}) {
    Budget budget(SIZE_MAX);
    if (ReadQueue::create({.backend = kind}, budget, Log())) usable.push_back(kind);
  }
  return usable;
}

std::vector<uint32_t> first_numbers(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

}  // namespace headrace::test
