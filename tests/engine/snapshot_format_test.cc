#include "engine/snapshot_format.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace headrace {
namespace {

using Bytes = std::array<std::byte, SnapshotHeader::kBytes>;

const SnapshotHeader kHeader = {.model = {0x0102030405060708, 0x1112131415161718},
                                .has_logits = true,
                                .token_count = 10,
                                .position = 9,
                                .vocabulary_size = 100,
                                .recurrent_bytes = 64,
                                .positional_bytes = 36};
constexpr uint64_t kFileBytes = 128 + 40 + 400 + 64 + 36 + 16;

/// The layout, written down once more.
std::vector<unsigned char> by_hand() {
  std::vector<unsigned char> bytes = {'H', 'D', 'R', 'S', 'N', 'A', 'P', '\n'};
  const auto add = [&](uint64_t number, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<unsigned char>(number >> (8 * i)));
  };
  add(1, 4);    // Version.
  add(128, 4);  // Bytes of the header.
  add(0x0102030405060708, 8);
  add(0x1112131415161718, 8);
  add(0, 4);  // Exact.
  add(1, 4);  // Has logits.
  for (const uint64_t number : {uint64_t{10}, uint64_t{9}, uint64_t{100}, uint64_t{64}, uint64_t{36}, kFileBytes}) {
    add(number, 8);
  }
  bytes.resize(120);
  add(XXH3_128bits(bytes.data(), 120).low64, 8);
  return bytes;
}

Bytes with(size_t offset, uint64_t number, size_t size) {
  Bytes bytes = encode_snapshot_header(kHeader);
  std::memcpy(bytes.data() + offset, &number, size);
  const uint64_t hash = XXH3_128bits(bytes.data(), 120).low64;
  std::memcpy(bytes.data() + 120, &hash, 8);
  return bytes;
}

TEST(SnapshotFormat, IsTheLayoutThatIsWrittenDown) {
  const Bytes bytes = encode_snapshot_header(kHeader);
  const auto expected = by_hand();
  ASSERT_EQ(expected.size(), bytes.size());
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
  EXPECT_EQ(kHeader.file_bytes(), kFileBytes);
}

TEST(SnapshotFormat, ReadsWhatItWrote) {
  SnapshotHeader header = kHeader;
  EXPECT_EQ(parse_snapshot_header(encode_snapshot_header(header), kFileBytes).value(), header);
  header.has_logits = false;
  EXPECT_EQ(parse_snapshot_header(encode_snapshot_header(header), kFileBytes - 400).value(), header);
  header = {.vocabulary_size = 1};  // The empty sequence of a model without any state.
  EXPECT_EQ(parse_snapshot_header(encode_snapshot_header(header), 144).value(), header);
}

TEST(SnapshotFormat, EveryFlippedBitIsDamage) {
  const Bytes good = encode_snapshot_header(kHeader);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto refused = parse_snapshot_header(bytes, kFileBytes);
    ASSERT_FALSE(refused) << bit;
    // A version that is greater is taken for one.
    EXPECT_EQ(refused.error().code, bit / 8 >= 8 && bit / 8 < 12 && bit != 64 ? Code::kUnsupported : Code::kFormat)
        << bit;
  }
}

TEST(SnapshotFormat, AFileOfAnyOtherSizeIsDamage) {
  const Bytes bytes = encode_snapshot_header(kHeader);
  for (const uint64_t size : {uint64_t{0}, kFileBytes - 1, kFileBytes + 1, UINT64_MAX}) {
    const auto refused = parse_snapshot_header(bytes, size);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
  }
}

TEST(SnapshotFormat, ImpossibleNumbersAreDamageEvenWithTheRightHash) {
  const Bytes cases[] = {
      with(12, 127, 4),                 // Another size of the header.
      with(36, 2, 4),                   // An unknown flag.
      with(40, uint64_t{1} << 32, 8),   // Too many tokens,
      with(40, UINT64_MAX / 4 + 1, 8),  // so many that sizes would wrap around,
      with(48, 11, 8),                  // more than there are taken in,
      with(48, 0, 8),                   // logits of nothing,
      with(56, 0, 8),                   // no vocabulary,
      with(56, UINT64_MAX, 8),
      with(64, 63, 8),  // half a number,
      with(64, UINT64_MAX - 3, 8),
      with(72, uint64_t{1} << 51, 8),
      with(80, kFileBytes + 4, 8),  // a sum that is none,
      with(88, 1, 8),               // and something where nothing is.
      with(112, 1, 8),
  };
  for (const Bytes& bytes : cases) {
    const auto refused = parse_snapshot_header(bytes, kFileBytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFormat);
  }
}

}  // namespace
}  // namespace headrace
