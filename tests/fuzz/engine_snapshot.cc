// libFuzzer target: a snapshot file that a stranger wrote, for a model with a tiny state. The first byte says whether
// the hashes are made to fit, so that what lies behind them is reached. What is accepted is in range, and the second
// reading finds it again.

#include <xxhash.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/ensure.h"
#include "engine/snapshot_file.h"
#include "fuzz/memory_file.h"

namespace {

using namespace headrace;
using test::MemoryFile;

constexpr size_t kVocabulary = 8;
constexpr size_t kCapacityTokens = 16;

alignas(4096) std::byte g_buffer[4096];

/// Two numbers, and one for each token.
class TinyState : public SequenceState {
 public:
  size_t position() const override { return position_; }
  size_t capacity_tokens() const override { return kCapacityTokens; }
  size_t memory_bytes() const override { return 0; }
  void reset() override { position_ = 0; }
  uint64_t part_bytes(StatePart part, size_t tokens) const override {
    return sizeof(float) * (part == StatePart::kRecurrent ? recurrent_.size() : tokens);
  }
  Status visit(StatePart part, size_t tokens, PieceVisitor visitor) override {
    if (part == StatePart::kRecurrent) return visitor(std::as_writable_bytes(std::span(recurrent_)));
    ENSURE(tokens <= kCapacityTokens);
    return visitor(std::as_writable_bytes(std::span(positional_).first(tokens)));
  }
  void set_position(size_t tokens) override { position_ = tokens; }
  void copy_from(const SequenceState&) override {}

  void check() const {
    for (const float number : recurrent_) ENSURE(std::isfinite(number));
    for (size_t i = 0; i < position_; ++i) ENSURE(std::isfinite(positional_[i]));
  }

 private:
  size_t position_ = 0;
  std::array<float, 2> recurrent_{};
  std::array<float, kCapacityTokens> positional_{};
};

bool all_finite(std::span<const float> numbers) {
  for (const float number : numbers) {
    if (!std::isfinite(number)) return false;
  }
  return true;
}

void repair_hashes(std::string& bytes) {
  if (bytes.size() < SnapshotHeader::kBytes + SnapshotHeader::kHashBytes) return;
  const uint64_t header = XXH3_128bits(bytes.data(), 120).low64;
  std::memcpy(bytes.data() + 120, &header, 8);
  const XXH128_hash_t whole = XXH3_128bits(bytes.data(), bytes.size() - 16);
  std::memcpy(bytes.data() + bytes.size() - 16, &whole.low64, 8);
  std::memcpy(bytes.data() + bytes.size() - 8, &whole.high64, 8);
}

void check_accepted(SnapshotReader& reader, const SnapshotHeader& header, std::string_view bytes) {
  TinyState state;
  std::array<int32_t, kCapacityTokens + 1> ids{};
  std::array<float, kVocabulary> logits{};
  SnapshotContents contents{state, ids, logits, {}};
  const Status status = reader.read(header, contents);
  ENSURE(status);
  state.check();
  ENSURE(state.position() == header.position && header.position <= header.token_count);
  for (size_t i = 0; i < header.token_count; ++i) ENSURE(ids[i] >= 0 && ids[i] < static_cast<int32_t>(kVocabulary));
  ENSURE(all_finite(logits) && header.file_bytes() == bytes.size());
  const auto encoded = encode_snapshot_header(header);
  ENSURE(std::memcmp(encoded.data(), bytes.data(), encoded.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if ((data[0] & 1) != 0) repair_hashes(bytes);
  const size_t block_bytes = (data[0] & 2) != 0 ? 512 : 1;
  const FileOpener opener = [&](const std::string& path, ReadMode) -> Result<std::unique_ptr<ReadableFile>> {
    return std::unique_ptr<ReadableFile>(std::make_unique<MemoryFile>(path, bytes, block_bytes));
  };
  auto reader = SnapshotReader::open("snapshot", opener, g_buffer);
  if (!reader) return 0;
  const TinyState state;
  const SnapshotTarget target = {.model = {1, 2},
                                 .numeric_mode = NumericMode::kExact,
                                 .vocabulary_size = kVocabulary,
                                 .capacity_tokens = kCapacityTokens,
                                 .state = state,
                                 .all_finite = all_finite};
  const auto header = reader.value().check(target);
  if (header) check_accepted(reader.value(), header.value(), bytes);
  return 0;
}
