#include <gtest/gtest.h>

#include "text/chat/json_value.h"
#include "text/chat/json_writer.h"
#include "text/toy_tokenizer.h"

namespace headrace {
namespace {

JsonValue parse(std::string_view text) {
  auto value = parse_json(text, kInnerJsonBounds);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? value.take_value() : JsonValue();
}

Code refusal(std::string_view text, const JsonBounds& bounds = kInnerJsonBounds) {
  const auto value = parse_json(text, bounds);
  EXPECT_FALSE(value) << text;
  return value ? Code::kIo : value.error().code;
}

struct PythonJson {
  const char* text;
  const char* spaced;  // json.dumps(json.loads(text), ensure_ascii=False) of Python 3.11.
  const char* sorted;  // The same with sort_keys=True, separators=(",", ":").
};
// clang-format off
constexpr PythonJson kPythonJson[] = {
    {R"(null)", R"(null)", R"(null)"},
    {R"(true)", R"(true)", R"(true)"},
    {R"([])", R"([])", R"([])"},
    {R"({})", R"({})", R"({})"},
    {R"({"b":1,"a":[true,null,"x"]})", R"({"b": 1, "a": [true, null, "x"]})", R"({"a":[true,null,"x"],"b":1})"},
    {R"(0)", R"(0)", R"(0)"},
    {R"(-0)", R"(0)", R"(0)"},
    {R"(-0.0)", R"(-0.0)", R"(-0.0)"},
    {R"(1.0)", R"(1.0)", R"(1.0)"},
    {R"(1.5)", R"(1.5)", R"(1.5)"},
    {R"(10e-1)", R"(1.0)", R"(1.0)"},
    {R"(1e5)", R"(100000.0)", R"(100000.0)"},
    {R"(1E+5)", R"(100000.0)", R"(100000.0)"},
    {R"(1e15)", R"(1000000000000000.0)", R"(1000000000000000.0)"},
    {R"(1e16)", R"(1e+16)", R"(1e+16)"},
    {R"(123456789012345678)", R"(123456789012345678)", R"(123456789012345678)"},
    {R"(1234567890123456789012345678901234567890)", R"(1234567890123456789012345678901234567890)", R"(1234567890123456789012345678901234567890)"},
    {R"(-98765432109876543210)", R"(-98765432109876543210)", R"(-98765432109876543210)"},
    {R"(18446744073709551615)", R"(18446744073709551615)", R"(18446744073709551615)"},
    {R"(18446744073709551616)", R"(18446744073709551616)", R"(18446744073709551616)"},
    {R"(1e-4)", R"(0.0001)", R"(0.0001)"},
    {R"(1e-5)", R"(1e-05)", R"(1e-05)"},
    {R"(0.00012345)", R"(0.00012345)", R"(0.00012345)"},
    {R"(1.7976931348623157e308)", R"(1.7976931348623157e+308)", R"(1.7976931348623157e+308)"},
    {R"(5e-324)", R"(5e-324)", R"(5e-324)"},
    {R"(1e-999)", R"(0.0)", R"(0.0)"},
    {R"(-1e-999)", R"(-0.0)", R"(-0.0)"},
    {R"(0.1)", R"(0.1)", R"(0.1)"},
    {R"(3.14159265358979323846)", R"(3.141592653589793)", R"(3.141592653589793)"},
    {R"(9007199254740993.0)", R"(9007199254740992.0)", R"(9007199254740992.0)"},
    {R"(9999999999999998.0)", R"(9999999999999998.0)", R"(9999999999999998.0)"},
    {R"(2.5e-7)", R"(2.5e-07)", R"(2.5e-07)"},
    {R"(100000000000000000000.0)", R"(1e+20)", R"(1e+20)"},
    {R"(1.0e2)", R"(100.0)", R"(100.0)"},
    {R"([1, 2.50 ,3])", R"([1, 2.5, 3])", R"([1,2.5,3])"},
    {R"("\u00e9\u4e2d\ud83d\ude00/\/")", R"("é中😀//")", R"("é中😀//")"},
    {R"("\b\f\n\r\t\"\\\u0000\u001f\u007f\u2028")", R"("\b\f\n\r\t\"\\\u0000\u001f ")", R"("\b\f\n\r\t\"\\\u0000\u001f ")"},
    {R"({"a":1,"b":2,"a":3})", R"({"a": 3, "b": 2})", R"({"a":3,"b":2})"},
    {R"({"z":{"b":1,"a":2},"\uffff":1,"\ud83d\ude00":2,"é":3,"Z":4,"":5})", R"({"z": {"b": 1, "a": 2}, "￿": 1, "😀": 2, "é": 3, "Z": 4, "": 5})", R"({"":5,"Z":4,"z":{"a":2,"b":1},"é":3,"￿":1,"😀":2})"},
    {R"([[{"b":[{"d":1,"c":2}],"a":{}}]])", R"([[{"b": [{"d": 1, "c": 2}], "a": {}}]])", R"([[{"a":{},"b":[{"c":2,"d":1}]}]])"},
    {R"(  {"k" : "v"}  )", R"({"k": "v"})", R"({"k":"v"})"},
    {R"(1e22)", R"(1e+22)", R"(1e+22)"},
    {R"(1e23)", R"(1e+23)", R"(1e+23)"},
    {R"(4.35)", R"(4.35)", R"(4.35)"},
    {R"(0.000099)", R"(9.9e-05)", R"(9.9e-05)"},
    {R"(-1.5E-10)", R"(-1.5e-10)", R"(-1.5e-10)"},
};
// clang-format on

TEST(JsonWriter, WritesWhatPythonWrites) {
  for (const PythonJson& expected : kPythonJson) {
    const JsonValue value = parse(expected.text);
    EXPECT_EQ(spaced_json(value), expected.spaced) << expected.text;
    EXPECT_EQ(sorted_json(value), expected.sorted) << expected.text;
  }
}

TEST(JsonValue, KeepsIntegersOfAnyLength) {
  const std::string digits = testing::repeat("1234567890", 400);
  EXPECT_EQ(spaced_json(parse(digits)), digits);
  EXPECT_EQ(spaced_json(parse("-" + digits)), "-" + digits);
}

TEST(JsonValue, RefusesNumbersThatPythonDoesNotRead) {
  EXPECT_EQ(refusal(testing::repeat("1", 4301)), Code::kArgument);
  EXPECT_EQ(refusal(testing::repeat("1", 100'000)), Code::kArgument);
  EXPECT_EQ(refusal("1e999"), Code::kArgument);
  EXPECT_EQ(refusal("-1e99999"), Code::kArgument);
}

TEST(JsonValue, RefusesWhatIsNotJson) {
  for (const char* text :
       {"",    " ",   "{",           "[1,]",     "{\"a\":}",     "{\"a\" 1}",        "01",      "+1",
        ".5",  "1.",  "NaN",         "Infinity", "'a'",          "\"\\x\"",          "\"\n\"",  "nul",
        "1 2", "{}x", "\"\\ud800\"", "\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "// c\n1", "\"open"}) {
    EXPECT_EQ(refusal(text), Code::kFormat) << text;
  }
}

TEST(JsonValue, AZeroByteIsNotTheEnd) {
  using namespace std::string_literals;
  for (const std::string& text : {"{}\0{garbage"s, "[1]\0"s, "\0"s, "\"a\0b\""s}) {
    const auto parsed = parse_json(text, kInnerJsonBounds);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, Code::kFormat);
  }
}

TEST(JsonValue, SaysWhereItStopsToBeJson) {
  const auto value = parse_json("{\"a\": tru}", kInnerJsonBounds);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, "not JSON in UTF-8, at byte 10");
}

TEST(JsonValue, HoldsToItsBounds) {
  constexpr JsonBounds kBounds = {.bytes_max = 20, .depth_max = 3, .values_max = 5};
  EXPECT_TRUE(parse_json("[[[]]]", kBounds));
  EXPECT_EQ(refusal("[[[[]]]]", kBounds), Code::kArgument);
  EXPECT_EQ(refusal("{\"a\":[{\"b\":[]}]}", kBounds), Code::kArgument);
  EXPECT_TRUE(parse_json("[1,2,3,4]", kBounds));
  EXPECT_EQ(refusal("[1,2,3,4,5]", kBounds), Code::kArgument);
  EXPECT_TRUE(parse_json("\"123456789012345678\"", kBounds));
  EXPECT_EQ(refusal("\"1234567890123456789\"", kBounds), Code::kArgument);
}

TEST(JsonValue, RefusesDeepNestingWithoutDeepRecursion) {
  EXPECT_EQ(refusal(testing::repeat("[", 1'000'000)), Code::kArgument);
  EXPECT_EQ(refusal(testing::repeat("{\"a\":", 1'000'000)), Code::kArgument);
}

TEST(JsonValue, MergesManyDoubledKeysInLinearTime) {
  std::string text = "{";
  for (int index = 0; index < 190'000; ++index)
    text += "\"" + std::to_string(index % 95'000) + "\":" + std::to_string(index) + ",";
  text.back() = '}';
  const JsonValue value = parse(text);
  const auto& object = std::get<JsonObject>(value.data);
  ASSERT_EQ(object.size(), 95'000u);
  EXPECT_EQ(object[7].key, "7");
  EXPECT_EQ(std::get<JsonNumber>(object[7].value.data).text, "95007");
}

TEST(JsonValue, FindsMembersByKey) {
  const JsonValue value = parse("{\"a\":1,\"b\":null}");
  const auto& object = std::get<JsonObject>(value.data);
  ASSERT_NE(find_member(object, "b"), nullptr);
  EXPECT_EQ(find_member(object, "c"), nullptr);
}

}  // namespace
}  // namespace headrace
