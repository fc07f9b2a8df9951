#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/test_files.h"
#include "support/value_generator.h"

namespace headrace {
namespace {

using test::FaultPlan;
using test::Files;
using test::safetensors_bytes;
using test::WrittenTensor;

struct ReadTensor {
  std::string name;
  DType dtype;
  Shape shape;
  ByteRange range;
};

struct Outcome {
  std::vector<ReadTensor> tensors;
  Status status;
  HeaderSummary summary;
};

Outcome read_header(const std::string& contents, size_t block_bytes = 1, FaultPlan* plan = nullptr) {
  const Files files{{"f.safetensors", contents}};
  const auto file = test::memory_opener(files, block_bytes, plan)("f.safetensors", ReadMode::kDirect).take_value();
  alignas(4096) static std::byte chunk[8192];
  Outcome outcome;
  const auto sink = [&](const HeaderTensor& tensor) -> Status {
    outcome.tensors.push_back({std::string(tensor.name), tensor.dtype, tensor.shape, tensor.range});
    return {};
  };
  Result<HeaderSummary> summary = read_safetensors_header(*file, chunk, sink);
  if (summary) {
    outcome.summary = summary.value();
  } else {
    outcome.status = summary.take_error();
  }
  return outcome;
}

/// A header in text and `data_bytes` of data.
Outcome read_text(const std::string& header, size_t data_bytes = 0) {
  return read_header(safetensors_bytes(header, std::string(data_bytes, '\0')));
}

/// The header of one tensor called "t".
std::string tensor_header(const std::string& fields) {
  return "{\"t\":{" + fields + "}}";
}

void expect_refused(const Outcome& outcome, const std::string& reason) {
  ASSERT_FALSE(outcome.status) << "expected: " << reason;
  const Error& error = outcome.status.error();
  EXPECT_EQ(error.code, Code::kFormat);
  EXPECT_NE(error.message.find("f.safetensors"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(reason), std::string::npos) << error.message << "\nexpected: " << reason;
}

std::vector<WrittenTensor> three_tensors() {
  return {{"model.a", "F32", {2, 3}, std::string(24, 'a')},
          {"b \"quoted\" \xC3\xA9", "BF16", {5}, std::string(10, 'b')},
          {"scalar", "U8", {}, "c"}};
}

TEST(SafetensorsHeader, GivesEveryTensorWithItsPlace) {
  for (const size_t block : {1u, 512u, 4096u}) {
    const std::string contents = safetensors_bytes(three_tensors(), 3);
    const Outcome outcome = read_header(contents, block);
    ASSERT_TRUE(outcome.status) << outcome.status.error().message;
    ASSERT_EQ(outcome.tensors.size(), 3u);
    EXPECT_EQ(outcome.summary.tensor_count, 3u);
    EXPECT_EQ(outcome.summary.data_begin, contents.size() - 35);
    EXPECT_EQ(outcome.tensors[0].name, "model.a");
    EXPECT_EQ(outcome.tensors[0].dtype, DType::kF32);
    EXPECT_EQ(outcome.tensors[0].shape.text(), "[2, 3]");
    EXPECT_EQ(outcome.tensors[1].name, "b \"quoted\" \xC3\xA9");
    EXPECT_EQ(outcome.tensors[2].shape.text(), "[]");
    EXPECT_EQ(outcome.tensors[2].shape.element_count(), 1u);
    for (const auto& [tensor, byte] : {std::pair(0, 'a'), std::pair(1, 'b'), std::pair(2, 'c')}) {
      const ByteRange range = outcome.tensors[tensor].range;
      EXPECT_EQ(contents.substr(range.offset, range.size), std::string(range.size, byte));
    }
  }
}

TEST(SafetensorsHeader, KnowsEveryTypeByItsName) {
  const std::pair<const char*, size_t> types[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},  {"I32", 4},     {"I16", 2},     {"I8", 1},
      {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  for (const auto& [name, bytes] : types) {
    const Outcome outcome = read_header(safetensors_bytes({{"t", name, {3}, std::string(3 * bytes, 'x')}}));
    ASSERT_TRUE(outcome.status) << name;
    EXPECT_STREQ(dtype_name(outcome.tensors[0].dtype), name);
    EXPECT_EQ(dtype_bytes(outcome.tensors[0].dtype), bytes);
  }
}

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  EXPECT_TRUE(read_text("{}").status);
  EXPECT_TRUE(read_text("{}       ").status);
  EXPECT_TRUE(read_text("{\"__metadata__\":{}}").status);
  EXPECT_TRUE(read_text("{\"__metadata__\":{\"a\":\"b\",\"c\":\"" + std::string(10'000, 'x') + "\"}}").status);
  // Fields in any order, no elements, eight dimensions.
  EXPECT_TRUE(read_text(tensor_header(R"("data_offsets":[0,2],"shape":[1,1,1,1,1,1,1,1],"dtype":"BF16")"), 2).status);
  EXPECT_TRUE(read_text(tensor_header(R"("dtype":"F32","shape":[4,0],"data_offsets":[0,0])")).status);
  EXPECT_TRUE(
      read_text(tensor_header(R"("dtype":"F32","shape":[18446744073709551615,3,0],"data_offsets":[0,0])")).status);
}

TEST(SafetensorsHeader, RefusesLengthsThatCannotBe) {
  expect_refused(read_header(""), "too few");
  expect_refused(read_header(std::string(7, '\0')), "too few");
  std::string contents = safetensors_bytes(std::string("{}"), std::string());
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 20, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    for (int i = 0; i < 8; ++i) contents[i] = static_cast<char>(length >> (8 * i));
    FaultPlan plan;
    expect_refused(read_header(contents, 1, &plan), "a header of " + std::to_string(length));
    EXPECT_EQ(plan.read_count, 1u) << "only the length may be read";
  }
}

TEST(SafetensorsHeader, RefusesAHeaderLargerThanTheFormatAllows) {
  /// A sparse file: a length, and nothing behind it.
  class HugeFile final : public ReadableFile {
   public:
    const std::string& path() const override { return path_; }
    uint64_t size_bytes() const override { return uint64_t{1} << 40; }
    size_t block_bytes() const override { return 1; }
    bool is_direct() const override { return false; }
    Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
      EXPECT_EQ(offset, 0u) << "nothing but the length is of interest";
      const uint64_t length = 100'000'001;
      std::memset(out.data(), 0, out.size());
      std::memcpy(out.data(), &length, std::min(out.size(), sizeof(length)));
      return out.size();
    }

   private:
    std::string path_ = "huge.safetensors";
  };
  HugeFile file;
  std::byte chunk[4096];
  const auto summary = read_safetensors_header(file, chunk, [](const HeaderTensor&) -> Status { return {}; });
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, Code::kFormat);
  EXPECT_NE(summary.error().message.find("more than the 100000000"), std::string::npos) << summary.error().message;
}

TEST(SafetensorsHeader, RefusesWhatIsNotJson) {
  for (const char* header :
       {"", " ", "{", "}", "{]", "{\"a\"}", "{\"a\":}", "nonsense", "{\"a\":{}},", "{}{}", "\xff\xfe", "{\"\xff\":1}",
        "{'a':1}", "{\"__metadata__\":{\"a\":\"b\"}", "{//\n}", "\0{}"}) {
    const Outcome outcome = read_text(header);
    ASSERT_FALSE(outcome.status) << header;
    EXPECT_EQ(outcome.status.error().code, Code::kFormat);
    EXPECT_NE(outcome.status.error().message.find("f.safetensors"), std::string::npos);
  }
}

TEST(SafetensorsHeader, RefusesValuesOfTheWrongKind) {
  for (const char* header :
       {"[]", "null", "1", "-1", "1.5", "\"text\"", "true", "[{}]", "{\"t\":1}", "{\"t\":\"x\"}", "{\"t\":[]}",
        "{\"t\":null}", "{\"__metadata__\":1}", "{\"__metadata__\":[]}", "{\"__metadata__\":\"x\"}",
        "{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":{\"a\":{}}}", "{\"__metadata__\":{\"a\":[]}}",
        "{\"__metadata__\":{\"a\":null}}"}) {
    expect_refused(read_text(header), "is not expected there");
  }
  for (const char* fields :
       {R"("dtype":1)", R"("dtype":null)", R"("dtype":["F32"])", R"("dtype":{})", R"("shape":1)", R"("shape":"1")",
        R"("shape":{})", R"("shape":[[1]])", R"("shape":["1"])", R"("shape":[null])", R"("shape":[true])",
        R"("shape":[{}])", R"("data_offsets":1)", R"("data_offsets":{})", R"("data_offsets":"0,1")",
        R"("data_offsets":[[0,1]])", R"("data_offsets":["0","1"])", R"("dtype":"F32","dtype2":1)"}) {
    const Outcome outcome = read_text(tensor_header(fields));
    expect_refused(outcome, "tensor t");
  }
}

TEST(SafetensorsHeader, RefusesNumbersThatAreNotSizes) {
  for (const char* number : {"-1", "-0", "1.0", "1.5", "1e3", "18446744073709551616", "1e400", "-9223372036854775809",
                             "99999999999999999999999999999999999999"}) {
    const std::string text = number;
    expect_refused(read_text(tensor_header("\"dtype\":\"U8\",\"shape\":[" + text + "],\"data_offsets\":[0,1]"), 1),
                   "tensor t");
    expect_refused(read_text(tensor_header("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0," + text + "]"), 1),
                   "tensor t");
  }
  // No JSON numbers at all.
  for (const char* number : {"01", "+1", "0x10", "1_000", "NaN", "Infinity", ".5", "1."}) {
    const std::string text = number;
    EXPECT_FALSE(
        read_text(tensor_header("\"dtype\":\"U8\",\"shape\":[" + text + "],\"data_offsets\":[0,1]"), 1).status);
  }
}

TEST(SafetensorsHeader, RefusesMissingUnknownAndDoubledFields) {
  expect_refused(read_text(tensor_header("")), "dtype is missing");
  expect_refused(read_text(tensor_header(R"("shape":[1],"data_offsets":[0,1])"), 1), "dtype is missing");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","data_offsets":[0,1])"), 1), "shape is missing");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","shape":[1])"), 1), "data_offsets is missing");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1)"), 1),
                 "unknown field extra");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), 1), "twice");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1])"), 1), "twice");
  expect_refused(read_text(tensor_header(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1])"), 1),
                 "twice");
  expect_refused(read_text(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ is there twice");
}

TEST(SafetensorsHeader, RefusesTypesThatItDoesNotKnowByName) {
  for (const char* type : {"F4", "F6_E2M3", "BF17", "f32", "", "F32 ", "Q4_0"}) {
    const std::string fields = "\"dtype\":\"" + std::string(type) + "\",\"shape\":[1],\"data_offsets\":[0,1]";
    expect_refused(read_text(tensor_header(fields), 1), "unknown type " + std::string(type));
  }
}

TEST(SafetensorsHeader, RefusesShapesThatDoNotFit) {
  const auto fields = [](const char* shape, const char* offsets) {
    return tensor_header(std::string("\"dtype\":\"F32\",\"shape\":") + shape + ",\"data_offsets\":" + offsets);
  };
  expect_refused(read_text(fields("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), "more than 8 dimensions");
  expect_refused(read_text(fields("[2]", "[0,4]"), 4), "takes 8 bytes, but data_offsets give it 4");
  expect_refused(read_text(fields("[]", "[0,8]"), 8), "takes 4 bytes");
  expect_refused(read_text(fields("[0]", "[0,4]"), 4), "takes 0 bytes");
  // Products that wrap 64 bits to something that fits, or to zero.
  expect_refused(read_text(fields("[4294967296,4294967296]", "[0,0]")), "too large to be true");
  expect_refused(read_text(fields("[4611686018427387905]", "[0,4]"), 4), "too large to be true");
  expect_refused(read_text(fields("[18446744073709551615,18446744073709551615]", "[0,4]"), 4), "too large to be true");
}

TEST(SafetensorsHeader, RefusesOffsetsThatLeaveTheFile) {
  const auto fields = [](const char* offsets) {
    return tensor_header(std::string(R"("dtype":"U8","shape":[4],"data_offsets":)") + offsets);
  };
  expect_refused(read_text(fields("[4,0]"), 4), "run backwards");
  expect_refused(read_text(fields("[0,4]"), 3), "past the end");
  expect_refused(read_text(fields("[18446744073709551612,18446744073709551615]"), 4), "past the end");
  expect_refused(read_text(fields("[18446744073709551612,0]"), 4), "run backwards");
  expect_refused(read_text(fields("[0]"), 4), "fewer than two");
  expect_refused(read_text(fields("[]"), 4), "fewer than two");
  expect_refused(read_text(fields("[0,2,4]"), 4), "more than two");
}

TEST(SafetensorsHeader, RefusesNamesThatCannotBe) {
  const auto named = [](const std::string& name) {
    return "{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  };
  EXPECT_TRUE(read_text(named(std::string(512, 'n')), 1).status);
  expect_refused(read_text(named(std::string(513, 'n')), 1), "its name has 513 bytes");
  expect_refused(read_text(named("a\\u0000b"), 1), "zero byte");
  expect_refused(read_text(named(""), 1), "without a name");
  expect_refused(read_text(named(std::string(1'000'000, 'n')), 1), "no end of a string");
}

TEST(SafetensorsHeader, MessagesHoldNoControlCharacters) {
  const Outcome outcome = read_text("{\"a\\u001b[2J\\n\":{}}");
  expect_refused(outcome, "tensor a?[2J?: dtype is missing");
}

TEST(SafetensorsHeader, RefusesDeepNestingAtOnce) {
  expect_refused(read_text(std::string(1'000'000, '[')), "an array is not expected");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused(read_text(objects), "unknown field a");
}

TEST(SafetensorsHeader, EveryTruncationOfAFileIsRefused) {
  const std::string contents = safetensors_bytes(three_tensors());
  for (size_t size = 0; size < contents.size(); ++size) {
    expect_refused(read_header(contents.substr(0, size)), "");
  }
}

TEST(SafetensorsHeader, EveryTruncationOfTheTextIsRefused) {
  // The length is right here, and the text in it ends early.
  const std::string header = test::header_text(three_tensors());
  for (size_t size = 0; size < header.size(); ++size) {
    expect_refused(read_text(header.substr(0, size), 35), "");
  }
}

TEST(SafetensorsHeader, DamagedBytesNeverLeadOutOfTheFile) {
  const std::string contents = safetensors_bytes(three_tensors());
  size_t accepted_count = 0;
  for (uint64_t round = 0; round < 20'000; ++round) {
    std::string damaged = contents;
    const size_t flips = 1 + test::value_hash(round, 0) % 4;
    for (size_t i = 0; i < flips; ++i) {
      const uint64_t hash = test::value_hash(round, i + 1);
      damaged[hash % damaged.size()] = static_cast<char>(hash >> 32);
    }
    const Outcome outcome = read_header(damaged);
    accepted_count += static_cast<bool>(outcome.status);
    for (const ReadTensor& tensor : outcome.tensors) {
      ASSERT_LE(tensor.range.offset, damaged.size());
      ASSERT_LE(tensor.range.size, damaged.size() - tensor.range.offset);
      ASSERT_EQ(tensor.shape.element_count() * dtype_bytes(tensor.dtype), tensor.range.size);
    }
  }
  EXPECT_GT(accepted_count, 0u) << "damage of names and data goes unseen: the test must reach both sides";
}

TEST(SafetensorsHeader, ReturnsTheErrorOfEveryFailingRead) {
  std::vector<WrittenTensor> tensors;
  for (int i = 0; i < 500; ++i) tensors.push_back({"tensor." + std::to_string(i), "U8", {1}, "x"});
  const std::string contents = safetensors_bytes(tensors);
  FaultPlan counting;
  ASSERT_TRUE(read_header(contents, 512, &counting).status);
  ASSERT_GT(counting.read_count, 3u);
  for (uint64_t fail_at = 0; fail_at < counting.read_count; ++fail_at) {
    FaultPlan plan;
    plan.fail_at = fail_at;
    const Outcome outcome = read_header(contents, 512, &plan);
    ASSERT_FALSE(outcome.status);
    EXPECT_EQ(outcome.status.error().code, Code::kIo);
  }
}

TEST(SafetensorsHeader, AnErrorOfTheSinkEndsTheReading) {
  const Files files{{"f", safetensors_bytes(three_tensors())}};
  const auto file = test::memory_opener(files)("f", ReadMode::kBuffered).take_value();
  std::byte chunk[512];
  int calls = 0;
  const auto summary = read_safetensors_header(*file, chunk, [&](const HeaderTensor&) -> Status {
    ++calls;
    return error(Code::kUnsupported, "enough");
  });
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, Code::kUnsupported);
  EXPECT_NE(summary.error().message.find("enough"), std::string::npos);
  EXPECT_EQ(calls, 1);
}

struct IndexOutcome {
  std::vector<std::pair<std::string, std::string>> entries;
  std::optional<uint64_t> total_size;
  Status status;
};

IndexOutcome read_index(const std::string& text) {
  const Files files{{"index.json", text}};
  const auto file = test::memory_opener(files)("index.json", ReadMode::kBuffered).take_value();
  std::byte chunk[512];
  IndexOutcome outcome;
  const auto entry = [&](std::string_view tensor, std::string_view name) -> Status {
    outcome.entries.emplace_back(tensor, name);
    return {};
  };
  const auto total_size = [&](uint64_t bytes) -> Status {
    outcome.total_size = bytes;
    return {};
  };
  Result<uint64_t> bytes = read_safetensors_index(*file, chunk, {entry, total_size});
  if (!bytes) outcome.status = bytes.take_error();
  return outcome;
}

TEST(SafetensorsIndex, GivesEveryEntryAndTheTotal) {
  const IndexOutcome outcome = read_index(R"({"metadata":{"total_size":42},"weight_map":{"a":"x","b":"y"}})");
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.total_size, 42u);
  ASSERT_EQ(outcome.entries.size(), 2u);
  EXPECT_EQ(outcome.entries[1], std::pair(std::string("b"), std::string("y")));
}

TEST(SafetensorsIndex, PassesOverWhatItDoesNotKnow) {
  const IndexOutcome outcome = read_index(R"({"x":null,"y":[1,-2,3.5,"s",{"weight_map":{"q":"r"}},true],
      "metadata":{"total_parameters":7,"deep":{"total_size":1,"a":[{}]},"total_size":42.0,"note":"n","null":null},
      "z":{"metadata":{"total_size":9}},"weight_map":{"a":"x"},"last":false})");
  ASSERT_TRUE(outcome.status) << outcome.status.error().message;
  EXPECT_EQ(outcome.total_size, 42u);
  ASSERT_EQ(outcome.entries.size(), 1u);
}

TEST(SafetensorsIndex, RefusesWhatDoesNotBelongThere) {
  for (const char* text : {"",
                           "[]",
                           "1",
                           "{}",
                           "{\"metadata\":{}}",
                           "{\"weight_map\":[]}",
                           "{\"weight_map\":1}",
                           "{\"weight_map\":null}",
                           "{\"weight_map\":{\"a\":1}}",
                           "{\"weight_map\":{\"a\":{}}}",
                           "{\"weight_map\":{\"a\":[\"x\"]}}",
                           "{\"weight_map\":{},\"weight_map\":{}}",
                           "{\"metadata\":1,\"weight_map\":{}}",
                           "{\"metadata\":{},\"metadata\":{},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":-1},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":1.5},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":1e300},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":\"1\"},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":[]},\"weight_map\":{}}",
                           "{\"metadata\":{\"total_size\":1,\"total_size\":1},\"weight_map\":{}}",
                           "{\"weight_map\":{}} x"}) {
    const IndexOutcome outcome = read_index(text);
    ASSERT_FALSE(outcome.status) << text;
    EXPECT_EQ(outcome.status.error().code, Code::kFormat);
    EXPECT_NE(outcome.status.error().message.find("index.json"), std::string::npos);
  }
}

TEST(SafetensorsIndex, RefusesDeepNesting) {
  const IndexOutcome outcome = read_index("{\"x\":" + std::string(10'000, '[') + std::string(10'000, ']') + "}");
  ASSERT_FALSE(outcome.status);
  EXPECT_NE(outcome.status.error().message.find("nested deeper"), std::string::npos);
}

TEST(SafetensorsIndex, EveryTruncationIsRefused) {
  const std::string text = R"({"metadata":{"total_size":42,"x":[1]},"weight_map":{"a":"x","b":"y"}})";
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(read_index(text.substr(0, size)).status) << size;
}

}  // namespace
}  // namespace headrace
