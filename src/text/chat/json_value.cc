#include "text/chat/json_value.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

/// nlohmann's parser over long double: it refuses what its number type cannot hold, and integers of more than 308
/// digits are not to be refused. Numbers are read from their text here, so the type does not touch their value.
using WideJson = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, long double>;

constexpr size_t kNumberBytesMax = 4300;  // As in Python, which bounds the work of reading digits.

/// `number` as Python's repr prints it.
std::string print_double(double number) {
  char text[64];
  const auto scientific = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  const std::string shortest(text, scientific.ptr);
  const int exponent = std::atoi(shortest.c_str() + shortest.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return shortest;
  const auto fixed = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  std::string result(text, fixed.ptr);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

/// The number that the text stands for, rounded to a double; nothing when it is too large.
std::optional<double> read_double(const std::string& text, long double approximate) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc()) return number;
  if (std::fabs(approximate) > 1) return std::nullopt;
  return text.starts_with('-') ? -0.0 : 0.0;  // Too small for a double: zero, as in Python.
}

/// The later value of a key takes the place of the earlier one.
JsonObject merge_doubles(JsonObject members) {
  std::unordered_map<std::string_view, size_t> last;
  for (size_t index = 0; index < members.size(); ++index) last[members[index].key] = index;
  if (last.size() == members.size()) return members;
  JsonObject merged;
  std::vector<bool> taken(members.size(), false);
  for (const JsonMember& member : members) {
    const size_t index = last.find(member.key)->second;
    if (taken[index]) continue;
    taken[index] = true;
    merged.push_back({member.key, std::move(members[index].value)});
  }
  return merged;
}

/// Builds a value from nlohmann's events, whose names these are. A member that returns false ends the parse.
class Builder {
 public:
  explicit Builder(const JsonBounds& bounds) : bounds_(bounds) {}

  bool null() { return add({nullptr}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(int64_t value) { return add({JsonNumber{std::to_string(value)}}); }
  bool number_unsigned(uint64_t value) { return add({JsonNumber{std::to_string(value)}}); }
  bool number_float(long double value, const std::string& text);
  bool string(std::string& value) { return add({std::move(value)}); }
  bool binary(WideJson::binary_t&) { return refuse(Code::kFormat, "binary data"); }
  bool start_object(size_t) { return open({JsonObject()}); }
  bool start_array(size_t) { return open({JsonArray()}); }
  bool key(std::string& key);
  bool end_object();
  bool end_array() { return close(); }
  bool parse_error(size_t position, const std::string&, const WideJson::exception& problem);

  Result<JsonValue> take() {
    if (error_) return std::move(*error_);
    return std::move(root_);
  }

 private:
  bool refuse(Code code, const char* reason) {
    error_ = error(code, "%s", reason);
    return false;
  }
  bool add(JsonValue value);
  bool open(JsonValue value);
  bool close();

  const JsonBounds bounds_;
  std::vector<JsonValue> open_;  // Arrays and objects, outermost first.
  JsonValue root_;
  size_t value_count_ = 0;
  std::optional<Error> error_;
};

bool Builder::number_float(long double value, const std::string& text) {
  if (text.size() > kNumberBytesMax) return refuse(Code::kArgument, "JSON holds a number of too many digits");
  if (text.find_first_of(".eE") == std::string::npos) return add({JsonNumber{text}});
  const std::optional<double> number = read_double(text, value);
  if (!number) return refuse(Code::kArgument, "JSON holds a number beyond the range of a double");
  return add({JsonNumber{print_double(*number)}});
}

bool Builder::key(std::string& key) {
  std::get<JsonObject>(open_.back().data).push_back({std::move(key), {}});
  return true;
}

bool Builder::end_object() {
  auto& members = std::get<JsonObject>(open_.back().data);
  members = merge_doubles(std::move(members));
  return close();
}

bool Builder::add(JsonValue value) {
  if (value_count_ == bounds_.values_max) return refuse(Code::kArgument, "JSON holds more values than are allowed");
  ++value_count_;
  if (open_.empty()) {
    root_ = std::move(value);
  } else if (auto* array = std::get_if<JsonArray>(&open_.back().data)) {
    array->push_back(std::move(value));
  } else {
    std::get<JsonObject>(open_.back().data).back().value = std::move(value);
  }
  return true;
}

bool Builder::open(JsonValue value) {
  if (open_.size() == bounds_.depth_max) return refuse(Code::kArgument, "JSON is nested deeper than is allowed");
  open_.push_back(std::move(value));
  return true;
}

bool Builder::close() {
  JsonValue value = std::move(open_.back());
  open_.pop_back();
  return add(std::move(value));
}

bool Builder::parse_error(size_t position, const std::string&, const WideJson::exception& problem) {
  constexpr int kOutOfRange = 406;  // nlohmann's number for a number that its type cannot hold.
  if (problem.id == kOutOfRange) return refuse(Code::kArgument, "JSON holds a number beyond the range of a double");
  error_ = error(Code::kFormat, "not JSON in UTF-8, at byte %zu", position);
  return false;
}

}  // namespace

Result<JsonValue> parse_json(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes_max) {
    return error(Code::kArgument, "%zu bytes of JSON, more than the %zu allowed", text.size(), bounds.bytes_max);
  }
  // The library takes a zero byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return error(Code::kFormat, "not JSON: a zero byte at byte %zu", zero);
  }
  Builder builder(bounds);
  // What it returns is whether the builder took everything; `take` knows the same, and why not.
  (void)WideJson::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

const JsonValue* find_member(const JsonObject& object, std::string_view key) {
  for (const JsonMember& member : object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

}  // namespace headrace
