#include "text/chat/json_writer.h"

#include <algorithm>
#include <vector>

namespace headrace {
namespace {

struct Layout {
  const char* item_separator;
  const char* key_separator;
  bool sorts_keys;
};
constexpr Layout kSpaced = {", ", ": ", false};
constexpr Layout kSorted = {",", ":", true};

/// Appends values; recursion is as deep as parse_json let the value be.
class Writer {
 public:
  explicit Writer(const Layout& layout) : layout_(layout) {}

  void operator()(std::nullptr_t) { json_ += "null"; }
  void operator()(bool value) { json_ += value ? "true" : "false"; }
  void operator()(const JsonNumber& number) { json_ += number.text; }
  void operator()(const std::string& text) { append_json_string(text, json_); }
  void operator()(const JsonArray& array);
  void operator()(const JsonObject& object);

  void write(const JsonValue& value) { std::visit(*this, value.data); }
  std::string take() { return std::move(json_); }

 private:
  const Layout& layout_;
  std::string json_;
};

void Writer::operator()(const JsonArray& array) {
  json_ += '[';
  for (size_t index = 0; index < array.size(); ++index) {
    if (index > 0) json_ += layout_.item_separator;
    write(array[index]);
  }
  json_ += ']';
}

void Writer::operator()(const JsonObject& object) {
  std::vector<const JsonMember*> members;
  for (const JsonMember& member : object) members.push_back(&member);
  if (layout_.sorts_keys) {
    // The order of UTF-8 bytes is the order of code points.
    std::ranges::sort(members, {}, [](const JsonMember* member) -> std::string_view { return member->key; });
  }
  json_ += '{';
  for (size_t index = 0; index < members.size(); ++index) {
    if (index > 0) json_ += layout_.item_separator;
    append_json_string(members[index]->key, json_);
    json_ += layout_.key_separator;
    write(members[index]->value);
  }
  json_ += '}';
}

void append_escape(char character, std::string& json) {
  static constexpr char kDigits[] = "0123456789abcdef";
  static constexpr std::string_view kShort = "\bb\ff\nn\rr\tt\"\"\\\\";
  for (size_t index = 0; index < kShort.size(); index += 2) {
    if (kShort[index] != character) continue;
    json += '\\';
    json += kShort[index + 1];
    return;
  }
  const auto code = static_cast<unsigned char>(character);
  json += "\\u00";
  json += kDigits[code >> 4];
  json += kDigits[code & 15];
}

std::string write(const JsonValue& value, const Layout& layout) {
  Writer writer(layout);
  writer.write(value);
  return writer.take();
}

}  // namespace

std::string spaced_json(const JsonValue& value) {
  return write(value, kSpaced);
}

std::string sorted_json(const JsonValue& value) {
  return write(value, kSorted);
}

void append_json_string(std::string_view text, std::string& json) {
  json += '"';
  for (const char character : text) {
    const bool is_plain = static_cast<unsigned char>(character) >= 0x20 && character != '"' && character != '\\';
    if (is_plain) {
      json += character;
    } else {
      append_escape(character, json);
    }
  }
  json += '"';
}

}  // namespace headrace
