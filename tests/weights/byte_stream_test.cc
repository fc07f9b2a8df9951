#include "weights/byte_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/test_files.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;

struct Streamed {
  std::string text;
  Status status;
  uint64_t bytes_read = 0;
};

Streamed stream_all(const std::string& contents, ByteRange range, size_t block_bytes, size_t chunk_bytes,
                    FaultPlan* plan = nullptr) {
  const Files files{{"f", contents}};
  const auto file = test::memory_opener(files, block_bytes, plan)("f", ReadMode::kDirect).take_value();
  alignas(4096) static std::byte memory[64 * 1024];
  ByteStream stream(*file, range, std::span(memory).first(chunk_bytes));
  Streamed streamed;
  for (ByteStreamIterator byte(stream); byte != ByteStreamIterator(); ++byte) streamed.text += *byte;
  streamed.status = stream.status();
  streamed.bytes_read = stream.bytes_read();
  return streamed;
}

TEST(ByteStream, GivesARangeThroughAnyChunk) {
  std::string contents;
  for (int i = 0; i < 5000; ++i) contents += std::to_string(i) + ",";
  for (const size_t block : {1u, 512u, 4096u}) {
    for (const size_t chunk : {block, 3 * block, size_t{8192}}) {
      for (const ByteRange range : {ByteRange{0, contents.size()}, ByteRange{8, 100}, ByteRange{511, 1},
                                    ByteRange{1000, 0}, ByteRange{513, contents.size() - 513}}) {
        const Streamed streamed = stream_all(contents, range, block, chunk);
        EXPECT_TRUE(streamed.status);
        EXPECT_EQ(streamed.text, contents.substr(range.offset, range.size)) << block << " " << chunk;
      }
    }
  }
}

TEST(ByteStream, KeepsOneByteOfWhiteSpaceOutsideStrings) {
  const std::string contents = "{ \n\t  \"a  b\"  :   [1,\r\n 2 ]  }" + std::string(100'000, ' ');
  const Streamed streamed = stream_all(contents, {0, contents.size()}, 1, 4096);
  EXPECT_TRUE(streamed.status);
  EXPECT_EQ(streamed.text, "{ \"a  b\" : [1,\r2 ] } ");
}

TEST(ByteStream, EndsAtATokenThatIsTooLong) {
  const size_t longest = ByteStream::kTokenBytesMax;
  const std::string quote = "\"";
  const std::string too_long[] = {quote + std::string(longest + 10, 'a') + quote, std::string(longest + 10, '1'),
                                  quote + std::string(longest + 10, '\\') + quote, std::string(longest + 10, '[')};
  for (const std::string& contents : too_long) {
    const Streamed streamed = stream_all(contents, {0, contents.size()}, 1, 4096);
    ASSERT_FALSE(streamed.status);
    EXPECT_EQ(streamed.status.error().code, Code::kFormat);
    EXPECT_LE(streamed.text.size(), longest + 2);
  }
  const std::string allowed = quote + std::string(longest - 10, 'a') + quote;
  EXPECT_EQ(stream_all(allowed + allowed, {0, 2 * allowed.size()}, 1, 4096).text, allowed + allowed);
}

TEST(ByteStream, AnEscapedQuoteDoesNotEndAString) {
  const std::string contents = R"("a\"  b\\"  "  c")";
  EXPECT_EQ(stream_all(contents, {0, contents.size()}, 1, 4096).text, R"("a\"  b\\" "  c")");
}

TEST(ByteStream, EndsAtAFailingRead) {
  const std::string contents(10'000, 'x');
  FaultPlan plan;
  plan.fail_at = 1;
  const Streamed streamed = stream_all(contents, {0, contents.size()}, 1, 4096, &plan);
  ASSERT_FALSE(streamed.status);
  EXPECT_EQ(streamed.status.error().code, Code::kIo);
  EXPECT_EQ(streamed.text.size(), 4096u);
}

TEST(ByteStream, CountsWholeBlocks) {
  const std::string contents(10'000, ' ');
  EXPECT_EQ(stream_all(contents, {600, 100}, 512, 4096).bytes_read, 512u);
  EXPECT_EQ(stream_all(contents, {9'990, 10}, 4096, 4096).bytes_read, 4096u);
}

}  // namespace
}  // namespace headrace
