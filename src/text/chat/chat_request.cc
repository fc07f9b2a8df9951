#include "text/chat/chat_request.h"

#include <optional>
#include <span>
#include <utility>

#include "text/chat/json_writer.h"
#include "text/utf8.h"

namespace headrace {
namespace {

/// A string of a stranger for a message: quoted, escaped and short.
std::string quote(std::string_view text) {
  constexpr size_t kShownBytesMax = 64;
  std::string quoted;
  append_json_string(text.substr(0, valid_utf8_prefix_bytes(text.substr(0, kShownBytesMax))), quoted);
  return text.size() > kShownBytesMax ? quoted + "..." : quoted;
}

/// A value and where it stands, such as messages[3].content.
struct Place {
  JsonValue& value;
  std::string path;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value.data); }
};

std::string element_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::string member_path(const std::string& path, const char* key) {
  return path.empty() ? key : path + "." + key;
}

/// The object that stands there.
Result<JsonObject*> object_at(const Place& place) {
  auto* object = std::get_if<JsonObject>(&place.value.data);
  if (object == nullptr) return error(Code::kArgument, "%s: not an object", place.path.c_str());
  return object;
}

/// The list that stands there, of at most `size_max` elements.
Result<JsonArray*> array_at(const Place& place, size_t size_max) {
  auto* array = std::get_if<JsonArray>(&place.value.data);
  if (array == nullptr) return error(Code::kArgument, "%s: not a list", place.path.c_str());
  if (array->size() > size_max) {
    return error(Code::kArgument, "%s: %zu entries, more than the %zu allowed", place.path.c_str(), array->size(),
                 size_max);
  }
  return array;
}

/// Members of an object, by key. Null counts as not there.
class Members {
 public:
  Members(JsonObject& object, std::string path) : object_(object), path_(std::move(path)) {}

  std::string path(const char* key) const { return member_path(path_, key); }
  std::optional<Place> find(const char* key) const {
    for (JsonMember& member : object_) {
      if (member.key != key) continue;
      Place place{member.value, path(key)};
      return place.is_null() ? std::nullopt : std::optional<Place>(std::move(place));
    }
    return std::nullopt;
  }
  /// The string called `key`, which is empty from then on; empty, too, when it is not there.
  Result<std::string> take_text(const char* key) const {
    const std::optional<Place> place = find(key);
    if (!place) return std::string();
    auto* text = std::get_if<std::string>(&place->value.data);
    if (text == nullptr) return error(Code::kArgument, "%s: not a string", place->path.c_str());
    return std::move(*text);
  }
  Result<std::optional<bool>> flag(const char* key) const {
    const std::optional<Place> place = find(key);
    if (!place) return std::optional<bool>();
    const auto* flag = std::get_if<bool>(&place->value.data);
    if (flag == nullptr) return error(Code::kArgument, "%s: not true or false", place->path.c_str());
    return std::optional<bool>(*flag);
  }

 private:
  JsonObject& object_;
  std::string path_;
};

template <class Value>
struct Word {
  const char* word;
  Value value;
};

/// The value that `word` stands for. The message of the error lists what is allowed.
template <class Value>
Result<Value> value_of_word(std::span<const Word<Value>> words, const std::string& word, const std::string& path) {
  std::string allowed;
  for (const Word<Value>& known : words) {
    if (known.word == word) return known.value;
    allowed += (allowed.empty() ? "" : ", ") + quote(known.word);
  }
  return error(Code::kArgument, "%s: %s is none of %s", path.c_str(), quote(word).c_str(), allowed.c_str());
}

constexpr Word<ChatRole> kRoles[] = {{"system", ChatRole::kSystem},
                                     {"developer", ChatRole::kSystem},
                                     {"user", ChatRole::kUser},
                                     {"assistant", ChatRole::kAssistant},
                                     {"tool", ChatRole::kTool}};

Result<ContentPart> parse_part(const Place& place) {
  const Members members(*TRY(object_at(place)), place.path);
  const std::string type = TRY(members.take_text("type"));
  if (type == "image" || type == "image_url") {
    return error(Code::kUnsupported, "%s: images are not supported in this version", place.path.c_str());
  }
  if (!type.empty() && type != "text") {
    return error(Code::kArgument, "%s: %s is none of \"text\", \"image\", \"image_url\"", members.path("type").c_str(),
                 quote(type).c_str());
  }
  if (!members.find("text")) return error(Code::kArgument, "%s: not a string", members.path("text").c_str());
  return ContentPart{TRY(members.take_text("text"))};
}

Result<std::vector<ContentPart>> parse_content(const Members& message) {
  std::vector<ContentPart> parts;
  const std::optional<Place> content = message.find("content");
  if (!content) return parts;
  if (auto* text = std::get_if<std::string>(&content->value.data)) {
    parts.push_back({std::move(*text)});
    return parts;
  }
  if (!std::holds_alternative<JsonArray>(content->value.data)) {
    return error(Code::kArgument, "%s: not a string, a list of parts, or null", content->path.c_str());
  }
  JsonArray& list = *TRY(array_at(*content, kContentPartsMax));
  for (size_t index = 0; index < list.size(); ++index) {
    parts.push_back(TRY(parse_part({list[index], element_path(content->path, index)})));
  }
  return parts;
}

Result<std::string> parse_arguments(const Members& function) {
  const std::optional<Place> place = function.find("arguments");
  if (!place) return std::string("{}");
  if (auto* text = std::get_if<std::string>(&place->value.data)) return std::move(*text);
  if (std::holds_alternative<JsonObject>(place->value.data)) return spaced_json(place->value);
  return error(Code::kArgument, "%s: not a string or an object", place->path.c_str());
}

Result<ToolCall> parse_call(const Place& place) {
  const Members members(*TRY(object_at(place)), place.path);
  const std::string type = TRY(members.take_text("type"));
  if (!type.empty() && type != "function") {
    return error(Code::kArgument, "%s: %s is not \"function\"", members.path("type").c_str(), quote(type).c_str());
  }
  const std::optional<Place> function_place = members.find("function");
  if (!function_place) return error(Code::kArgument, "%s: missing", members.path("function").c_str());
  const Members function(*TRY(object_at(*function_place)), function_place->path);
  ToolCall call;
  call.id = TRY(members.take_text("id"));
  call.name = TRY(function.take_text("name"));
  if (call.name.empty()) return error(Code::kArgument, "%s: missing or empty", function.path("name").c_str());
  call.arguments = TRY(parse_arguments(function));
  return call;
}

Result<std::vector<ToolCall>> parse_calls(const Members& message) {
  std::vector<ToolCall> calls;
  const std::optional<Place> place = message.find("tool_calls");
  if (!place) return calls;
  JsonArray& list = *TRY(array_at(*place, kToolCallsMax));
  for (size_t index = 0; index < list.size(); ++index) {
    calls.push_back(TRY(parse_call({list[index], element_path(place->path, index)})));
  }
  return calls;
}

/// Tools are shown to the model as they are; that they are objects is all that is asked of them.
Result<JsonArray> parse_tools(const Members& members) {
  const std::optional<Place> place = members.find("tools");
  if (!place) return JsonArray();
  JsonArray& list = *TRY(array_at(*place, kToolsMax));
  for (size_t index = 0; index < list.size(); ++index) {
    TRY(object_at({list[index], element_path(place->path, index)}));
  }
  return std::move(list);
}

/// The text called `key`, or if that is not there or empty, `other_key`.
Result<std::string> take_text_of_either(const Members& members, const char* key, const char* other_key) {
  std::string text = TRY(members.take_text(key));
  std::string other = TRY(members.take_text(other_key));
  return text.empty() ? other : text;
}

Result<ChatMessage> parse_message(const Place& place) {
  const Members members(*TRY(object_at(place)), place.path);
  ChatMessage message;
  const std::string role = TRY(members.take_text("role"));
  message.role = TRY(value_of_word<ChatRole>(kRoles, role, members.path("role")));
  message.name = TRY(members.take_text("name"));
  message.content = TRY(parse_content(members));
  message.reasoning = TRY(take_text_of_either(members, "reasoning_content", "reasoning"));
  message.tool_calls = TRY(parse_calls(members));
  message.tool_call_id = TRY(take_text_of_either(members, "tool_call_id", "id"));
  message.tool = TRY(members.take_text("tool"));
  message.tools = TRY(parse_tools(members));
  if (!message.tool_calls.empty() && message.role != ChatRole::kAssistant) {
    return error(Code::kArgument, "%s: only an assistant calls tools", members.path("tool_calls").c_str());
  }
  if (!message.tools.empty() && message.role != ChatRole::kSystem) {
    return error(Code::kArgument, "%s: only a system message brings tools", members.path("tools").c_str());
  }
  return message;
}

Result<std::vector<ChatMessage>> parse_messages(const Members& request) {
  const std::optional<Place> place = request.find("messages");
  if (!place) return error(Code::kArgument, "messages: missing");
  JsonArray& list = *TRY(array_at(*place, kChatMessagesMax));
  if (list.empty()) return error(Code::kArgument, "messages: empty");
  std::vector<ChatMessage> messages;
  for (size_t index = 0; index < list.size(); ++index) {
    messages.push_back(TRY(parse_message({list[index], element_path(place->path, index)})));
  }
  return messages;
}

Result<ToolChoice> parse_tool_choice(const Members& request) {
  static constexpr Word<ToolChoice> kChoices[] = {
      {"auto", ToolChoice::kAuto}, {"none", ToolChoice::kNone}, {"required", ToolChoice::kRequired}};
  const std::optional<Place> place = request.find("tool_choice");
  if (!place) return ToolChoice::kAuto;
  if (std::holds_alternative<JsonObject>(place->value.data)) {
    return error(Code::kUnsupported, "tool_choice: the choice of one tool by name is not supported in this version");
  }
  const std::string choice = TRY(request.take_text("tool_choice"));
  return value_of_word<ToolChoice>(kChoices, choice, "tool_choice");
}

/// The schema itself: clients put it into `schema`, into another `json_schema`, or straight here.
Result<JsonValue> parse_schema(const Members& format) {
  const std::optional<Place> place = format.find("json_schema");
  if (!place) return error(Code::kArgument, "%s: missing", format.path("json_schema").c_str());
  const Members members(*TRY(object_at(*place)), place->path);
  for (const char* key : {"schema", "json_schema"}) {
    const std::optional<Place> inner = members.find(key);
    if (!inner) continue;
    TRY(object_at(*inner));
    return std::move(inner->value);
  }
  return std::move(place->value);
}

Result<ResponseFormat> parse_response_format(const Members& request) {
  using Kind = ResponseFormat::Kind;
  static constexpr Word<Kind> kKinds[] = {
      {"text", Kind::kText}, {"json_object", Kind::kJsonObject}, {"json_schema", Kind::kJsonSchema}};
  ResponseFormat format;
  const std::optional<Place> place = request.find("response_format");
  if (!place) return format;
  const Members members(*TRY(object_at(*place)), place->path);
  const std::string type = TRY(members.take_text("type"));
  format.kind = TRY(value_of_word<Kind>(kKinds, type, members.path("type")));
  if (format.kind == Kind::kJsonSchema) format.schema = TRY(parse_schema(members));
  return format;
}

/// The answer of two keys that mean the same.
Result<std::optional<bool>> parse_thinking(const Members& members) {
  const std::optional<bool> thinking = TRY(members.flag("thinking"));
  const std::optional<bool> enabled = TRY(members.flag("enable_thinking"));
  if (thinking && enabled && *thinking != *enabled) {
    return error(Code::kArgument, "thinking and enable_thinking contradict each other");
  }
  return thinking ? thinking : enabled;
}

Status read_thinking(JsonObject& object, const Members& members, ChatRequest& request) {
  struct Setting {
    bool thinking;
    ThinkingEffort effort;
  };
  static constexpr Word<Setting> kEfforts[] = {{"none", {false, ThinkingEffort::kDefault}},
                                               {"low", {true, ThinkingEffort::kLow}},
                                               {"high", {true, ThinkingEffort::kHigh}},
                                               {"max", {true, ThinkingEffort::kMax}}};
  const std::optional<bool> thinking = TRY(parse_thinking(members));
  request.thinking = thinking.value_or(true);
  const JsonValue* effort = find_member(object, "reasoning_effort");
  if (effort == nullptr) return {};
  if (std::holds_alternative<std::nullptr_t>(effort->data)) {
    request.effort = ThinkingEffort::kUnsaid;
    return {};
  }
  const std::string word = TRY(members.take_text("reasoning_effort"));
  const auto setting = TRY(value_of_word<Setting>(kEfforts, word, "reasoning_effort"));
  if (thinking.value_or(false) && !setting.thinking) {
    return error(Code::kArgument, "reasoning_effort: \"none\" contradicts thinking");
  }
  request.thinking = request.thinking && setting.thinking;
  request.effort = setting.effort;
  return {};
}

Status check_keys(const JsonObject& object) {
  static constexpr const char* kKeys[] = {"messages",         "tools",    "tool_choice",     "response_format",
                                          "reasoning_effort", "thinking", "enable_thinking", "add_generation_prompt"};
  for (const JsonMember& member : object) {
    bool is_known = false;
    for (const char* key : kKeys) is_known = is_known || member.key == key;
    if (!is_known) return error(Code::kArgument, "%s: no such key in a chat request", quote(member.key).c_str());
  }
  return {};
}

}  // namespace

Result<ChatRequest> parse_chat_request(std::string_view json) {
  auto parsed = parse_json(json, kChatRequestBounds);
  if (!parsed) return error(Code::kArgument, "chat request: %s", parsed.error().message.c_str());
  auto* object = std::get_if<JsonObject>(&parsed.value().data);
  if (object == nullptr) return error(Code::kArgument, "chat request: not a JSON object");
  TRY(check_keys(*object));
  const Members members(*object, "");
  ChatRequest request;
  request.messages = TRY(parse_messages(members));
  request.tools = TRY(parse_tools(members));
  request.tool_choice = TRY(parse_tool_choice(members));
  request.response_format = TRY(parse_response_format(members));
  TRY(read_thinking(*object, members, request));
  request.add_generation_prompt = TRY(members.flag("add_generation_prompt")).value_or(true);
  return request;
}

}  // namespace headrace
