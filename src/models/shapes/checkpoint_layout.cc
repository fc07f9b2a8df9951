#include "models/shapes/checkpoint_layout.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/ensure.h"
#include "models/shapes/counter_random.h"

namespace headrace {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kPageBytes = 4096;
/// Scattered headers get up to this much white space.
constexpr uint64_t kScatterPaddingMax = 600;

void append_entry(std::string& text, const PlacedTensor& placed) {
  text += '"';
  text += placed.name;
  text += R"(":{"dtype":")";
  text += dtype_name(placed.tensor.dtype);
  text += R"(","shape":[)";
  for (size_t i = 0; i < placed.tensor.shape.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(placed.tensor.shape.dims[i]);
  }
  text += R"(],"data_offsets":[)";
  text += std::to_string(placed.offset);
  text += ',';
  text += std::to_string(placed.offset + placed.tensor.byte_count());
  text += "]}";
}

bool stands_before(const PlacedTensor& a, const PlacedTensor& b) {
  const size_t a_bytes = dtype_bytes(a.tensor.dtype);
  const size_t b_bytes = dtype_bytes(b.tensor.dtype);
  return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
}

}  // namespace

Result<CheckpointLayout> CheckpointLayout::create(KimiTensors tensors, LayoutOptions options) {
  CheckpointLayout layout(std::move(tensors), std::move(options));
  const KimiTensors& all = layout.tensors_;
  ENSURE(layout.options_.layer_sources.empty() || layout.options_.layer_sources.size() == all.config().layer_count());
  if (all.config().is_nested) {  // A file per layer, then the ends of the text model in one.
    for (size_t group = KimiTensors::layer_group(0); group < all.head_group(); ++group) TRY(layout.add_group(group));
    TRY(layout.add_group(KimiTensors::kEmbeddingGroup));
    for (size_t group = all.head_group(); group < all.group_count(); ++group) TRY(layout.add_group(group));
  } else {
    for (size_t group = 0; group < all.group_count(); ++group) TRY(layout.add_group(group));
  }
  return layout;
}

bool CheckpointLayout::is_stored(size_t group) const {
  const auto layer = tensors_.layer_of_group(group);
  return !layer || options_.layer_sources.empty() || options_.layer_sources[*layer] == *layer;
}

/// Whether a group begins a file whatever fits into the one before it.
bool CheckpointLayout::starts_shard(size_t group) const {
  return shards_.empty() || (tensors_.config().is_nested && group != tensors_.head_group());
}

Status CheckpointLayout::add_group(size_t group) {
  if (!is_stored(group)) return {};
  if (starts_shard(group)) shards_.emplace_back();
  const bool may_split = !tensors_.config().is_nested;
  shards_.back().runs.push_back({group, 0, 0});
  size_t index = 0;
  return tensors_.for_each_of_group(group, [&](const ListedTensor& tensor) -> Status {
    const uint64_t bytes = tensor.byte_count();
    const uint64_t there = shards_.back().data_bytes;
    if (may_split && there > 0 && (there >= options_.shard_bytes_max || bytes > options_.shard_bytes_max - there)) {
      if (shards_.back().runs.back().count == 0) shards_.back().runs.pop_back();
      shards_.emplace_back();
      shards_.back().runs.push_back({group, index, 0});
    }
    ++shards_.back().runs.back().count;
    shards_.back().data_bytes += bytes;
    data_bytes_ += bytes;
    ++tensor_count_;
    ++index;
    return {};
  });
}

std::string CheckpointLayout::shard_name(size_t shard) const {
  char name[64];
  // The release of Kimi K3 counts with five digits and tells the total with six.
  std::snprintf(name, sizeof(name),
                tensors_.config().is_nested ? "model-%05zu-of-%06zu.safetensors" : "model-%05zu-of-%05zu.safetensors",
                shard + 1, shards_.size());
  return name;
}

Status CheckpointLayout::for_each_of_run(const Run& run, ListedTensorSink sink) const {
  size_t index = 0;
  return tensors_.for_each_of_group(run.group, [&](const ListedTensor& tensor) -> Status {
    const size_t place = index++;
    if (place < run.first || place - run.first >= run.count) return {};
    return sink(tensor);
  });
}

Result<std::vector<PlacedTensor>> CheckpointLayout::place(size_t shard) const {
  ENSURE(shard < shards_.size());
  std::vector<PlacedTensor> placed;
  for (const Run& run : shards_[shard].runs) {
    TRY(for_each_of_run(run, [&](const ListedTensor& tensor) -> Status {
      placed.push_back({std::string(tensor.name), tensor, 0});
      return {};
    }));
  }
  put_in_order(shard, placed);
  uint64_t end = 0;
  for (PlacedTensor& one : placed) {
    one.tensor.name = one.name;
    one.offset = end;
    end += one.tensor.byte_count();
  }
  return placed;
}

void CheckpointLayout::put_in_order(size_t shard, std::vector<PlacedTensor>& tensors) const {
  if (options_.order == TensorOrder::kName) {
    std::ranges::sort(tensors, stands_before);
    return;
  }
  const CounterRandom random(options_.seed, shard_name(shard));
  for (size_t i = tensors.size(); i > 1; --i) std::swap(tensors[i - 1], tensors[random.at(i) % i]);
}

std::string CheckpointLayout::header(size_t shard, std::span<const PlacedTensor> tensors) const {
  std::string text(kLengthBytes, '\0');
  text += '{';
  for (const PlacedTensor& placed : tensors) {
    if (text.back() != '{') text += ',';
    append_entry(text, placed);
  }
  text += '}';
  if (options_.order == TensorOrder::kName) {
    text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
    // Real files begin their data in the middle of a page, all but by accident; so do these, always.
    if (text.size() % kPageBytes == 0) text.append(kLengthBytes, ' ');
  } else {
    text.append(CounterRandom(options_.seed, shard_name(shard)).at(0) % kScatterPaddingMax, ' ');
    if (text.size() % 2 == 0) text += ' ';
  }
  const uint64_t length = text.size() - kLengthBytes;
  std::memcpy(text.data(), &length, sizeof(length));
  return text;
}

Result<std::string> CheckpointLayout::header(size_t shard) const {
  const std::vector<PlacedTensor> tensors = TRY(place(shard));
  return header(shard, tensors);
}

Result<std::string> CheckpointLayout::index_part(size_t part) const {
  ENSURE(part < index_part_count());
  if (part == 0) {
    return "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(data_bytes_) + "\n  },\n  \"weight_map\": {";
  }
  if (part == index_part_count() - 1) return std::string("\n  }\n}\n");
  const std::string file = shard_name(part - 1);
  std::string text;
  for (const Run& run : shards_[part - 1].runs) {
    TRY(for_each_of_run(run, [&](const ListedTensor& tensor) -> Status {
      text += part == 1 && text.empty() ? "\n    \"" : ",\n    \"";
      text += tensor.name;
      text += "\": \"";
      text += file;
      text += '"';
      return {};
    }));
  }
  return text;
}

}  // namespace headrace
