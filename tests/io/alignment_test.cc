#include "io/alignment.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Alignment, RoundsToMultiplesOfABlock) {
  EXPECT_EQ(align_down(4097, 4096), 4096u);
  EXPECT_EQ(align_down(4096, 4096), 4096u);
  EXPECT_EQ(align_up(4097, 4096), 8192u);
  EXPECT_EQ(align_up(4096, 4096), 4096u);
  EXPECT_EQ(align_up(0, 512), 0u);
  EXPECT_EQ(align_up(7, 1), 7u);
}

TEST(Alignment, WidensToTheBlocksThatARangeTouches) {
  const ByteRange inside = widen({5000, 100}, 4096);
  EXPECT_EQ(inside.offset, 4096u);
  EXPECT_EQ(inside.size, 4096u);
  const ByteRange across = widen({511, 2}, 512);
  EXPECT_EQ(across.offset, 0u);
  EXPECT_EQ(across.size, 1024u);
  const ByteRange unaligned = widen({13, 7}, 1);
  EXPECT_EQ(unaligned.offset, 13u);
  EXPECT_EQ(unaligned.size, 7u);
}

TEST(Alignment, MovesAnAddressUpToABlock) {
  alignas(1024) std::byte memory[2048];
  EXPECT_EQ(align_address(memory, 1024), memory);
  EXPECT_EQ(align_address(memory + 1, 1024), memory + 1024);
  EXPECT_EQ(align_address(memory + 3, 1), memory + 3);
}

}  // namespace
}  // namespace headrace
