#include "tools/shape_config.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "io/file.h"
#include "models/config_object.h"
#include "models/shapes/released_shapes.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kConfigBytesMax = 4 << 20;

Status keep_layers(Json& text, size_t layers, const std::string& path) {
  const nlohmann::json plain = text;
  const ConfigObject config = TRY(ConfigObject::wrap(plain, path));
  const size_t there = TRY(config.integer({"num_hidden_layers"}, {1, 1 << 20}));
  if (layers > there) {
    return error(Code::kArgument, "%zu layers are asked for; the shape has %zu", layers, there);
  }
  text["num_hidden_layers"] = layers;
  if (!config.has_object("linear_attn_config")) return {};
  for (const char* name : {"full_attn_layers", "kda_layers"}) {
    Json& lists = text["linear_attn_config"];
    if (!lists.contains(name) || !lists[name].is_array()) continue;  // Who reads the configuration says what is wrong.
    Json& list = lists[name];
    Json kept = Json::array();
    for (const Json& number : list) {  // They count from 1.
      if (!number.is_number_unsigned() || number.get<uint64_t>() <= layers) kept.push_back(number);
    }
    list = kept;
  }
  return {};
}

Status set_experts(Json& text, size_t experts, const std::string& path) {
  const nlohmann::json plain = text;
  const ConfigObject config = TRY(ConfigObject::wrap(plain, path));
  for (const char* name : {"num_experts", "n_routed_experts", "num_local_experts"}) {
    if (!config.has({name})) continue;
    const size_t used = TRY(config.integer({"num_experts_per_token", "num_experts_per_tok"}, {1, 1 << 20}));
    if (experts < used) {
      return error(Code::kArgument, "%zu experts are asked for; a token uses %zu", experts, used);
    }
    text[name] = experts;
    return {};
  }
  return error(Code::kArgument, "%zu experts are asked for; the shape has none", experts);
}

}  // namespace

Result<std::string> shape_config(const std::string& shape) {
  if (const auto released = released_shape(shape)) return std::string(*released);
  if (shape.starts_with("deepseek-")) {
    return error(Code::kArgument, "shape %s: not available in this version, only %s and config files", shape.c_str(),
                 kReleasedShapeNames);
  }
  std::error_code failure;
  if (!std::filesystem::exists(shape, failure) && !failure) {
    return error(Code::kArgument, "'%s' is neither a shape (%s) nor a config file", shape.c_str(), kReleasedShapeNames);
  }
  return read_text_file(open_file, shape, kConfigBytesMax);
}

Result<std::string> changed_config(const std::string& config, const std::string& path, const ShapeChanges& changes) {
  TRY(parse_config(config, path));  // Says what is wrong with it, and bounds its depth.
  if (changes.layers == 0 && changes.experts == 0) return config;
  Json json = Json::parse(config, nullptr, /*allow_exceptions=*/false);
  const bool is_nested = json.contains("text_config") && json["text_config"].is_object();
  Json& text = is_nested ? json["text_config"] : json;
  if (changes.layers > 0) TRY(keep_layers(text, changes.layers, path));
  if (changes.experts > 0) TRY(set_experts(text, changes.experts, path));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<size_t> shared_layer_sources(const KimiConfig& config, size_t shared_layers) {
  std::array<std::vector<size_t>, 4> stored;  // By kind: the layers that are stored,
  std::array<size_t, 4> seen{};               // and how many layers of it came by.
  std::vector<size_t> sources;
  for (size_t layer = 0; layer < config.layer_count(); ++layer) {
    const size_t kind = (config.layer_is_kda[layer] ? 0u : 1u) + (config.layer_is_moe[layer] ? 0u : 2u);
    if (stored[kind].size() < shared_layers) stored[kind].push_back(layer);
    sources.push_back(stored[kind][seen[kind]++ % stored[kind].size()]);
  }
  return sources;
}

}  // namespace headrace
