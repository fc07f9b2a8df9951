#include "weights/tensor_directory.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/ensure.h"

namespace headrace {
namespace {

bool hash_less(const TensorDirectory::Entry& a, const TensorDirectory::Entry& b) {
  return a.hash < b.hash;
}

/// floor(hash / 2^64 * size), but for the lower bits of the hash.
size_t share_of(uint64_t hash, size_t size) {
  return static_cast<size_t>(((hash >> 32) * uint64_t{size}) >> 32);
}

}  // namespace

static_assert(sizeof(TensorDirectory::Entry) == 24);

Result<TensorDirectory> TensorDirectory::allocate(Budget& budget, size_t tensor_count) {
  TensorDirectory directory;
  directory.budget_ = &budget;
  directory.memory_ = TRY(AlignedMemory::allocate(budget, tensor_count * sizeof(Entry), "directory of tensors"));
  // The memory is zeroed, and Entry is trivial: zeroes are empty entries.
  directory.entries_ = {reinterpret_cast<Entry*>(directory.memory_.data()), tensor_count};
  return directory;
}

uint64_t TensorDirectory::hash_of(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

void TensorDirectory::add(uint64_t hash, size_t file_index) {
  ENSURE(added_count_ < entries_.size());
  entries_[added_count_++] = {.hash = hash, .place = FilePlace::pack(file_index, 0)};
}

const TensorDirectory::Entry* TensorDirectory::sort() {
  ENSURE(added_count_ == entries_.size());
  std::sort(entries_.begin(), entries_.end(), hash_less);
  const auto same = [](const Entry& a, const Entry& b) { return a.hash == b.hash; };
  const auto twin = std::adjacent_find(entries_.begin(), entries_.end(), same);
  return twin == entries_.end() ? nullptr : &*twin + 1;
}

TensorDirectory::Entry* TensorDirectory::find(uint64_t hash) {
  return const_cast<Entry*>(std::as_const(*this).find(hash));
}

const TensorDirectory::Entry* TensorDirectory::find(uint64_t hash) const {
  // Hashes lie evenly: an entry stands near its share of the way, and few of the misses of a binary search are left.
  // Names that were chosen to lie otherwise cost a search of the usual length.
  const size_t size = entries_.size();
  size_t begin = share_of(hash, size);
  size_t end = begin;
  size_t step = 16;
  for (; begin > 0 && entries_[begin].hash > hash; step *= 2) begin -= std::min(begin, step);
  for (step = 16; end < size && entries_[end].hash < hash; step *= 2) end += std::min(size - end, step);
  const auto place = std::lower_bound(entries_.begin() + static_cast<ptrdiff_t>(begin),
                                      entries_.begin() + static_cast<ptrdiff_t>(end), Entry{.hash = hash}, hash_less);
  return place != entries_.end() && place->hash == hash ? &*place : nullptr;
}

Status TensorDirectory::set_found(Entry& entry, DType dtype, const Shape& shape, uint64_t offset) {
  entry.shape_index = TRY(shape_index({dtype, shape}));
  entry.place = FilePlace::pack(FilePlace::file_index(entry.place), offset);
  entry.found = true;
  return {};
}

Result<uint32_t> TensorDirectory::shape_index(const TypedShape& shape) {
  // A scan, because models have a few dozen shapes, and the limit bounds what a hostile file can cost.
  const auto known = std::find(shapes_.begin(), shapes_.end(), shape);
  if (known != shapes_.end()) return static_cast<uint32_t>(known - shapes_.begin());
  if (shapes_.size() == kDistinctShapesMax) {
    return error(Code::kUnsupported, "tensors of more than %zu different types and shapes", kDistinctShapesMax);
  }
  if (shapes_.size() == shapes_.capacity()) {
    const size_t capacity = std::max<size_t>(64, 2 * shapes_.size());
    Reservation grown = TRY(budget_->reserve(capacity * sizeof(TypedShape), "shapes of tensors"));
    shapes_.reserve(capacity);
    shape_memory_ = std::move(grown);
  }
  shapes_.push_back(shape);
  return static_cast<uint32_t>(shapes_.size() - 1);
}

TensorInfo TensorDirectory::info(const Entry& entry) const {
  const TypedShape& shape = shapes_[entry.shape_index];
  const uint64_t bytes = shape.shape.element_count() * dtype_bytes(shape.dtype);
  return {shape.dtype, shape.shape, FilePlace::file_index(entry.place), {FilePlace::offset(entry.place), bytes}};
}

}  // namespace headrace
