#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/result.h"
#include "weights/checkpoint.h"

namespace headrace {

/// A byte of one of many files as one number: the file in the upper 16 bits, the offset in the lower 48.
struct FilePlace {
  static constexpr int kOffsetBits = 48;
  static constexpr size_t kFilesMax = size_t{1} << 16;
  static constexpr uint64_t kFileBytesMax = uint64_t{1} << kOffsetBits;

  static uint64_t pack(size_t file_index, uint64_t offset) { return (uint64_t{file_index} << kOffsetBits) | offset; }
  static uint32_t file_index(uint64_t packed) { return static_cast<uint32_t>(packed >> kOffsetBits); }
  static uint64_t offset(uint64_t packed) { return packed & (kFileBytesMax - 1); }
};

/// Names of tensors as hashes, with the place and shape of each: 24 bytes a tensor. It is filled in two steps, all
/// names first, because a header must not decide alone what belongs to it. One thread fills; const members from any.
class TensorDirectory {
 public:
  /// Types and shapes that one checkpoint may use; models have a few dozen.
  static constexpr size_t kDistinctShapesMax = 4096;

  struct Entry {
    uint64_t hash = 0;
    uint64_t place = 0;  ///< FilePlace; the offset is 0 until the tensor is found.
    uint32_t shape_index = 0;
    bool found = false;
    bool claimed = false;
  };

  /// Room for `tensor_count` tensors, from the budget.
  static Result<TensorDirectory> allocate(Budget& budget, size_t tensor_count);

  static uint64_t hash_of(std::string_view name);

  /// Adds a name that belongs to a file. Room must be left.
  void add(uint64_t hash, size_t file_index);
  /// Puts the names in order, after the last `add`. The second of two equal hashes, if there are any.
  const Entry* sort();

  Entry* find(uint64_t hash);
  const Entry* find(uint64_t hash) const;
  std::span<const Entry> entries() const { return entries_; }

  /// Records what the header of its file says of `entry`. kUnsupported when there are too many different shapes.
  Status set_found(Entry& entry, DType dtype, const Shape& shape, uint64_t offset);
  TensorInfo info(const Entry& entry) const;

  size_t memory_bytes() const { return memory_.size_bytes() + shape_memory_.bytes(); }

 private:
  struct TypedShape {
    DType dtype = DType::kF32;
    Shape shape;
    bool operator==(const TypedShape&) const = default;
  };
  Result<uint32_t> shape_index(const TypedShape& shape);

  Budget* budget_ = nullptr;
  AlignedMemory memory_;
  std::span<Entry> entries_;
  size_t added_count_ = 0;
  Reservation shape_memory_;
  std::vector<TypedShape> shapes_;
};

}  // namespace headrace
