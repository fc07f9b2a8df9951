#include "models/config_object.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

constexpr size_t kShownBytesMax = 60;

/// The value as JSON writes it, so without control characters, and shortened.
std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

/// Non-negative integers only: a float such as 2.0 is not one.
std::optional<uint64_t> as_integer(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer() && value.get<int64_t>() >= 0) return static_cast<uint64_t>(value.get<int64_t>());
  return std::nullopt;
}

Error missing(const std::string& path, ConfigObject::Names names) {
  std::string spellings;
  for (const char* name : names) {
    if (!spellings.empty()) spellings += " or ";
    spellings += '"' + std::string(name) + '"';
  }
  return error(Code::kFormat, "%s: %s is missing", path.c_str(), spellings.c_str());
}

}  // namespace

Result<ConfigObject> ConfigObject::wrap(const nlohmann::json& json, std::string path) {
  if (!json.is_object()) return error(Code::kFormat, "%s: a JSON object is expected", path.c_str());
  return ConfigObject(json, std::move(path));
}

const nlohmann::json* ConfigObject::find(Names names, const char** found_name) const {
  for (const char* name : names) {
    const auto found = json_->find(name);
    if (found == json_->end() || found->is_null()) continue;
    *found_name = name;
    return &*found;
  }
  return nullptr;
}

bool ConfigObject::has(Names names) const {
  const char* name = nullptr;
  return find(names, &name) != nullptr;
}

bool ConfigObject::has_object(const char* name) const {
  const auto found = json_->find(name);
  return found != json_->end() && found->is_object();
}

std::string ConfigObject::canonical_text() const {
  return json_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<ConfigObject> ConfigObject::object(const char* name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return error(Code::kFormat, "%s: \"%s\" is missing", path_.c_str(), name);
  return wrap(*found, path_ + ": " + name);
}

Result<size_t> ConfigObject::integer(Names names, Range range) const {
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value) return missing(path_, names);
  const auto number = as_integer(*value);
  if (!number || *number < range.least || *number > range.most) {
    return error(Code::kFormat, "%s: \"%s\" is %s; an integer from %llu to %llu is expected", path_.c_str(), name,
                 shown(*value).c_str(), static_cast<unsigned long long>(range.least),
                 static_cast<unsigned long long>(range.most));
  }
  return static_cast<size_t>(*number);
}

Result<size_t> ConfigObject::integer_or(Names names, size_t otherwise, Range range) const {
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value || (value->is_boolean() && !value->get<bool>())) return otherwise;
  return integer(names, range);
}

Result<float> ConfigObject::number(Names names) const {
  const std::optional<float> value = TRY(optional_number(names));
  if (!value) return missing(path_, names);
  return *value;
}

Result<std::optional<float>> ConfigObject::optional_number(Names names) const {
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value) return std::optional<float>();
  const float number = value->is_number() ? static_cast<float>(value->get<double>()) : NAN;
  if (!std::isfinite(number)) {
    return error(Code::kFormat, "%s: \"%s\" is %s; a number is expected", path_.c_str(), name, shown(*value).c_str());
  }
  return std::optional<float>(number);
}

Result<bool> ConfigObject::boolean(Names names) const {
  if (!has(names)) return missing(path_, names);
  return boolean_or_false(names);
}

Result<bool> ConfigObject::boolean_or_false(Names names) const {
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value) return false;
  if (!value->is_boolean()) {
    return error(Code::kFormat, "%s: \"%s\" is %s; true or false is expected", path_.c_str(), name,
                 shown(*value).c_str());
  }
  return value->get<bool>();
}

Result<std::string> ConfigObject::text(Names names) const {
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value) return missing(path_, names);
  if (!value->is_string()) {
    return error(Code::kFormat, "%s: \"%s\" is %s; a string is expected", path_.c_str(), name, shown(*value).c_str());
  }
  return value->get<std::string>();
}

Result<std::string> ConfigObject::text_or(Names names, const char* otherwise) const {
  if (!has(names)) return std::string(otherwise);
  return text(names);
}

Result<std::vector<size_t>> ConfigObject::integers(Names names, Range range, size_t count_max) const {
  const char* name = nullptr;
  const nlohmann::json* list = find(names, &name);
  if (!list) return missing(path_, names);
  if (!list->is_array() || list->size() > count_max) {
    return error(Code::kFormat, "%s: \"%s\" must be a list of at most %zu integers", path_.c_str(), name, count_max);
  }
  std::vector<size_t> numbers;
  for (const nlohmann::json& value : *list) {
    const auto number = as_integer(value);
    if (!number || *number < range.least || *number > range.most) {
      return error(Code::kFormat, "%s: \"%s\" holds %s; integers from %llu to %llu are expected", path_.c_str(), name,
                   shown(value).c_str(), static_cast<unsigned long long>(range.least),
                   static_cast<unsigned long long>(range.most));
    }
    numbers.push_back(static_cast<size_t>(*number));
  }
  return numbers;
}

Result<std::vector<int32_t>> ConfigObject::token_ids(Names names) const {
  constexpr Range kIds{0, INT32_MAX};
  constexpr size_t kIdsMax = 64;
  const char* name = nullptr;
  const nlohmann::json* value = find(names, &name);
  if (!value) return std::vector<int32_t>();
  if (!value->is_array()) return std::vector<int32_t>{static_cast<int32_t>(TRY(integer(names, kIds)))};
  std::vector<int32_t> ids;
  for (const size_t id : TRY(integers(names, kIds, kIdsMax))) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

std::string quoted(const std::string& text) {
  return shown(nlohmann::json(text));
}

Result<nlohmann::json> parse_config(const std::string& text, const std::string& path) {
  // Released configs nest five deep. The bound keeps recursion over the tree (printing, destruction) off the stack's
  // end.
  constexpr int kDepthMax = 32;
  bool too_deep = false;
  const auto bound_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kDepthMax;
    return !too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, bound_depth, /*allow_exceptions=*/false);
  if (too_deep) return error(Code::kFormat, "%s: values are nested more than %d deep", path.c_str(), kDepthMax);
  if (json.is_discarded()) return error(Code::kFormat, "%s: this is not valid JSON", path.c_str());
  if (!json.is_object()) return error(Code::kFormat, "%s: a JSON object is expected", path.c_str());
  return json;
}

}  // namespace headrace
