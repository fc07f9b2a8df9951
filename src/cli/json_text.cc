#include "cli/json_text.h"

#include <fmt/format.h>

#include <iterator>

#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

template <class T>
std::string json_array(std::span<const T> values) {
  std::string text = "[";
  for (const T value : values) fmt::format_to(std::back_inserter(text), "{},", value);
  if (!values.empty()) text.pop_back();
  return text + "]";
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_ids(std::span<const int32_t> ids) {
  return json_array(ids);
}

std::string json_floats(std::span<const float> values) {
  return json_array(values);
}

}  // namespace headrace::cli
