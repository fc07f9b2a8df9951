#include "weights/expert_catalog.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/ensure.h"
#include "formats/mxfp4.h"
#include "io/alignment.h"
#include "weights/elements.h"
#include "weights/safetensors.h"
#include "weights/tensor_directory.h"

namespace headrace {
namespace {

/// What a tensor of an expert must be: bytes [rows, cols] of a block format, or numbers.
struct TensorRule {
  DType dtype;
  uint64_t rows;
  uint64_t cols;
};

/// The tensors that a matrix is stored in: its data, and block scales where the format has them.
struct MatrixRules {
  TensorRule data;
  std::optional<TensorRule> scales;
};

Result<MatrixRules> rules_of(const ExpertMatrixShape& shape) {
  const uint64_t rows = shape.rows;
  const uint64_t cols = shape.cols;
  if (rows == 0 || cols == 0) return error(Code::kFormat, "experts of %zu x %zu numbers", shape.rows, shape.cols);
  switch (shape.format) {
    case Format::kF32:
      return MatrixRules{{DType::kF32, rows, cols}, std::nullopt};
    case Format::kBf16:
      return MatrixRules{{DType::kBf16, rows, cols}, std::nullopt};
    case Format::kF16:
      return MatrixRules{{DType::kF16, rows, cols}, std::nullopt};
    case Format::kMxfp4:
      if (cols % Mxfp4::kBlockColumns != 0) {
        return error(Code::kFormat, "experts of %zu columns: MXFP4 comes in blocks of %zu", shape.cols,
                     Mxfp4::kBlockColumns);
      }
      return MatrixRules{{DType::kU8, rows, cols / 2}, TensorRule{DType::kU8, rows, cols / Mxfp4::kBlockColumns}};
  }
  return error(Code::kUnsupported, "experts of an unknown format");
}

/// Claims a tensor and checks it. Its place, packed.
Result<uint64_t> claim(Checkpoint& checkpoint, const std::string& name, const TensorRule& rule) {
  const TensorInfo info = TRY(checkpoint.claim(name));
  // Scales are bytes to some writers and a type of their own to others.
  const bool same_type = info.dtype == rule.dtype || (rule.dtype == DType::kU8 && info.dtype == DType::kF8E8m0);
  const Shape wanted{.dims = {rule.rows, rule.cols}, .rank = 2};
  if (same_type && info.shape == wanted) return FilePlace::pack(info.file_index, info.range.offset);
  return error(Code::kFormat, "tensor %s: %s %s, expected %s %s", printable(name).c_str(), dtype_name(info.dtype),
               info.shape.text().c_str(), dtype_name(rule.dtype), wanted.text().c_str());
}

using PlacedRead = ExpertCatalog::PlacedRead;

/// Makes one read of those that touch or overlap, in a list ordered by place.
void join_touching(std::vector<PlacedRead>& reads) {
  size_t last = 0;
  for (size_t i = 1; i < reads.size(); ++i) {
    PlacedRead& into = reads[last];
    const PlacedRead& read = reads[i];
    if (read.file_index == into.file_index && read.range.offset <= into.range.end()) {
      into.range.size = std::max(into.range.end(), read.range.end()) - into.range.offset;
    } else {
      reads[++last] = read;
    }
  }
  reads.resize(last + 1);
}

size_t offset_in_slot(const std::vector<PlacedRead>& reads, uint64_t place) {
  const uint64_t offset = FilePlace::offset(place);
  const auto read = std::ranges::find_if(reads, [&](const PlacedRead& candidate) {
    return candidate.file_index == FilePlace::file_index(place) && candidate.range.offset <= offset &&
           offset < candidate.range.end();
  });
  ENSURE(read != reads.end());
  return read->slot_offset + static_cast<size_t>(offset - read->range.offset);
}

}  // namespace

Result<ExpertCatalog> ExpertCatalog::build(Checkpoint& checkpoint, Budget& budget, Layout layout, const Namer& namer) {
  ExpertCatalog catalog;
  catalog.checkpoint_ = &checkpoint;
  catalog.layout_ = std::move(layout);
  const Layout& wanted = catalog.layout_;
  ENSURE(!wanted.matrices.empty());
  for (const ExpertMatrixShape& shape : wanted.matrices) TRY(rules_of(shape));
  catalog.set_tensors();
  size_t record_count = 0;
  if (__builtin_mul_overflow(wanted.layer_count, wanted.expert_count, &record_count)) {
    return error(Code::kFormat, "%zu layers of %zu experts are too many", wanted.layer_count, wanted.expert_count);
  }
  catalog.places_ =
      TRY(Matrix<uint64_t>::allocate(budget, record_count, catalog.tensors_.size(), "catalogue of experts"));
  for (uint32_t layer = 0; layer < wanted.layer_count; ++layer) {
    for (uint32_t expert = 0; expert < wanted.expert_count; ++expert) {
      TRY(catalog.claim_record(checkpoint, {layer, expert}, namer));
    }
  }
  catalog.measure_slots();
  return catalog;
}

void ExpertCatalog::set_tensors() {
  for (size_t matrix = 0; matrix < layout_.matrices.size(); ++matrix) {
    const ExpertMatrixShape& shape = layout_.matrices[matrix];
    tensors_.push_back({matrix, false, shape.rows * format_row_bytes(shape.format, shape.cols)});
    const size_t scale_bytes = shape.rows * format_scale_row_bytes(shape.format, shape.cols);
    if (scale_bytes > 0) tensors_.push_back({matrix, true, scale_bytes});
  }
  for (const Tensor& tensor : tensors_) record_bytes_ += tensor.bytes;
}

Status ExpertCatalog::claim_record(Checkpoint& checkpoint, ExpertId id, const Namer& namer) {
  const std::span<uint64_t> places = places_.row(record_index(id));
  size_t next = 0;
  for (size_t matrix = 0; matrix < layout_.matrices.size(); ++matrix) {
    const MatrixRules rules = TRY(rules_of(layout_.matrices[matrix]));
    const TensorNames names = namer(id, matrix);
    places[next++] = TRY(claim(checkpoint, names.data, rules.data));
    if (rules.scales) places[next++] = TRY(claim(checkpoint, names.scales, *rules.scales));
  }
  return {};
}

void ExpertCatalog::measure_slots() {
  for (size_t file = 0; file < checkpoint_->file_count(); ++file) {
    slot_alignment_ = std::max(slot_alignment_, checkpoint_->file(file).block_bytes());
  }
  PlacedRecord record;
  uint64_t read_bytes = 0;
  for (uint32_t layer = 0; layer < layout_.layer_count; ++layer) {
    for (uint32_t expert = 0; expert < layout_.expert_count; ++expert) {
      place({layer, expert}, record);
      for (const PlacedRead& read : record.reads) read_bytes += read.range.size;
      const PlacedRead& last = record.reads.back();
      const size_t end = last.slot_offset + static_cast<size_t>(last.range.size);
      slot_bytes_ = std::max(slot_bytes_, static_cast<size_t>(align_up(end, slot_alignment_)));
    }
  }
  mean_read_bytes_ = read_bytes / std::max<uint64_t>(1, layout_.layer_count * layout_.expert_count);
}

ReadableFile& ExpertCatalog::file_of(ExpertId id, size_t tensor) const {
  return file(FilePlace::file_index(places_.row(record_index(id))[tensor]));
}

void ExpertCatalog::place(ExpertId id, PlacedRecord& record) const {
  const std::span<const uint64_t> places = places_.row(record_index(id));
  std::vector<PlacedRead>& reads = record.reads;
  reads.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const uint32_t file = FilePlace::file_index(places[i]);
    const ByteRange range{FilePlace::offset(places[i]), tensors_[i].bytes};
    reads.push_back({file, widen(range, checkpoint_->file(file).block_bytes()), 0});
  }
  std::ranges::sort(reads, {}, [](const PlacedRead& read) { return std::pair(read.file_index, read.range.offset); });
  join_touching(reads);
  uint64_t end = 0;
  for (PlacedRead& read : reads) {
    // Whole blocks at multiples of a block: the residues agree, and no area reaches into the next.
    read.slot_offset = static_cast<size_t>(align_up(end, checkpoint_->file(read.file_index).block_bytes()));
    end = read.slot_offset + read.range.size;
  }
  record.tensor_offsets.clear();
  for (const uint64_t place : places) record.tensor_offsets.push_back(offset_in_slot(reads, place));
}

}  // namespace headrace
