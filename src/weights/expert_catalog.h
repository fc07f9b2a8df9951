#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "formats/format.h"
#include "weights/checkpoint.h"
#include "weights/expert_id.h"

namespace headrace {

/// One matrix of an expert, the same for all experts of a model.
struct ExpertMatrixShape {
  Format format = Format::kBf16;
  size_t rows = 0;
  size_t cols = 0;
};

/// Where the bytes of every expert lie. Built once at load; read-only afterwards, from any thread.
class ExpertCatalog {
 public:
  /// Names the tensor of matrix `matrix` of an expert: its weights, or its block scales.
  struct TensorNames {
    std::string data;
    std::string scales;  ///< Empty where the format has none.
  };
  using Namer = std::function<TensorNames(ExpertId id, size_t matrix)>;

  struct Layout {
    size_t layer_count = 0;
    size_t expert_count = 0;
    std::vector<ExpertMatrixShape> matrices;
  };

  /// Claims and checks (types, shapes) the tensors of all experts. Keeps a reference to `checkpoint`, which stays where
  /// it is.
  static Result<ExpertCatalog> build(Checkpoint& checkpoint, Budget& budget, Layout layout, const Namer& namer);

  const Layout& layout() const { return layout_; }
  /// Bytes of a slot: the largest record with its extents widened to blocks, in whole pages.
  size_t slot_bytes() const { return slot_bytes_; }
  /// Bytes of one record as stored, without widening.
  size_t record_bytes() const { return record_bytes_; }
  /// Bytes that reading a record takes from the drive, widened to blocks: the mean of all.
  uint64_t mean_read_bytes() const { return mean_read_bytes_; }

  /// A read of whole blocks: `range` of file `file_index` to `slot_offset` in the slot. Areas do not overlap.
  struct PlacedRead {
    uint32_t file_index = 0;
    ByteRange range;
    size_t slot_offset = 0;
  };
  /// A record placed in a slot: its reads, and where each tensor then starts (data and scales of each matrix in turn).
  struct PlacedRecord {
    std::vector<PlacedRead> reads;
    std::vector<size_t> tensor_offsets;
  };
  /// Pure: coalesces the extents of `id` and places each so that its address and its file offset agree modulo the
  /// block.
  /// Extents whose blocks touch or overlap become one read. Its last block may reach past the end of the file.
  void place(ExpertId id, PlacedRecord& record) const;

  /// A tensor of a record: data or scales of a matrix.
  struct Tensor {
    size_t matrix = 0;
    bool is_scales = false;
    size_t bytes = 0;
  };
  /// Those of each record, in order: data and scales of each matrix in turn.
  std::span<const Tensor> tensors() const { return tensors_; }
  /// Block of the files, at least a page: what slots are aligned to.
  size_t slot_alignment() const { return slot_alignment_; }
  /// The file that a placed read goes to.
  ReadableFile& file(uint32_t file_index) const { return checkpoint_->file(file_index); }
  /// The file that holds tensor `tensor` of an expert.
  ReadableFile& file_of(ExpertId id, size_t tensor) const;

 private:
  void set_tensors();
  Status claim_record(Checkpoint& checkpoint, ExpertId id, const Namer& namer);
  void measure_slots();
  size_t record_index(ExpertId id) const { return id.layer * layout_.expert_count + id.expert; }

  Layout layout_;
  std::vector<Tensor> tensors_;
  const Checkpoint* checkpoint_ = nullptr;
  size_t slot_alignment_ = AlignedMemory::kAlignment;
  size_t slot_bytes_ = 0;
  size_t record_bytes_ = 0;
  uint64_t mean_read_bytes_ = 0;
  /// Per tensor of every expert: file index in the upper 16 bits, offset in the lower 48.
  Matrix<uint64_t> places_;
};

}  // namespace headrace
