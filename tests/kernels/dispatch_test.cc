#include <gtest/gtest.h>

#include "kernels/every_table.h"

namespace headrace {
namespace {

TEST(Dispatch, ScalarIsAlwaysThereAndLast) {
  const auto usable = usable_kernels();
  ASSERT_FALSE(usable.empty());
  EXPECT_STREQ(usable.back()->name, "scalar");
}

TEST(Dispatch, TheDefaultIsTheBest) {
  const auto selected = select_kernels("");
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected.value(), usable_kernels().front());
}

TEST(Dispatch, EveryUsableTableIsFoundByName) {
  for (const Kernels* kernels : usable_kernels()) {
    const auto selected = select_kernels(kernels->name);
    ASSERT_TRUE(selected);
    EXPECT_EQ(selected.value(), kernels);
  }
}

TEST(Dispatch, ATableOfAnotherProcessorIsUnsupported) {
#if defined(__x86_64__)
  const auto selected = select_kernels("neon");
#else
  const auto selected = select_kernels("avx512");
#endif
  ASSERT_FALSE(selected);
  EXPECT_EQ(selected.error().code, Code::kUnsupported);
}

TEST(Dispatch, AnUnknownNameIsAnArgumentError) {
  const auto selected = select_kernels("sse9");
  ASSERT_FALSE(selected);
  EXPECT_EQ(selected.error().code, Code::kArgument);
  EXPECT_NE(selected.error().message.find("sse9"), std::string::npos);
}

TEST(Dispatch, EveryTableIsComplete) {
  for (const Kernels* kernels : usable_kernels()) {
    for (size_t i = 0; i < kFormatCount; ++i) {
      EXPECT_NE(kernels->matmul[i], nullptr);
      EXPECT_NE(kernels->matmul_transposed[i], nullptr);
      EXPECT_NE(kernels->decode_row[i], nullptr);
    }
    EXPECT_NE(kernels->all_finite, nullptr);
  }
}

}  // namespace
}  // namespace headrace
