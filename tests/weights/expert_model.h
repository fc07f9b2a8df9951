#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "support/safetensors_writer.h"
#include "support/test_files.h"
#include "weights/checkpoint.h"
#include "weights/expert_catalog.h"

namespace headrace::test {

struct ExpertModelOptions {
  bool mxfp4 = true;
  size_t block_bytes = 1;
  /// Of every second file; 0: the same.
  size_t other_block_bytes = 0;
  /// Above 0: tensors in a seeded order, between fillers of odd lengths, behind a header of odd length.
  uint64_t scatter_seed = 0;
  /// Files that scattered tensors are dealt to.
  size_t file_count = 1;
  size_t layers = 2;
  size_t experts = 8;
  /// Factor on the rows of all matrices: 1 makes a record smaller than a block of 4096, 20 larger than ten.
  size_t row_factor = 1;
  ReadMode read_mode = ReadMode::kDirect;
  /// Tensors that take the place of others.
  std::map<std::string, WrittenTensor> replacements = {};
  /// All tensors, in place of the usual ones.
  std::vector<WrittenTensor> tensors = {};
};

/// A checkpoint of nothing but experts, opened: w1 and w3 of [40 r, 64], w2 of [64 r, 32], hashed values.
class ExpertModel {
 public:
  /// Files in memory.
  explicit ExpertModel(ExpertModelOptions options);
  /// Files in `folder` on disk, read in the mode of the options.
  ExpertModel(ExpertModelOptions options, const TempFolder& folder);

  ExpertCatalog::Layout layout() const;
  ExpertCatalog::Namer namer() const;
  Result<ExpertCatalog> catalog() const;
  std::vector<ExpertId> ids() const;
  /// Data and scales of w1, w3, w2: the order of the catalog.
  std::vector<std::string> tensor_names(ExpertId id) const;
  /// What was written, not what was read.
  const std::string& tensor_bytes(const std::string& name) const { return bytes_.at(name); }

  const ExpertModelOptions options;
  Files files;
  mutable FaultPlan plan;
  mutable Budget budget{size_t{256} << 20};
  std::unique_ptr<Checkpoint> checkpoint;

 private:
  Files make_files();
  std::vector<WrittenTensor> make_tensors() const;
  void open(const std::string& folder, const FileOpener& opener);

  std::map<std::string, std::string> bytes_;
};

/// The bytes that a view looks at, as the checkpoint stores them: data, then scales.
std::string stored_data(const WeightView& view);
std::string stored_scales(const WeightView& view);

}  // namespace headrace::test
