#include "engine/model_folder.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "kernels/dispatch.h"
#include "models/shapes/released_shapes.h"
#include "text/chat/chat_format.h"
#include "text/tokenizers.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

/// "shared 1", or null for a model that nobody made up.
Json synthetic_text(const ModelInfo& info) {
  if (!info.synthetic_shared_layers) return nullptr;
  return "shared " + std::to_string(*info.synthetic_shared_layers);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

Status check_model_folder(const std::string& folder) {
  std::error_code failure;
  const auto status = std::filesystem::status(folder, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    return error(Code::kIo, "there is no model folder '%s'", folder.c_str());
  }
  if (failure) return error(Code::kIo, "model folder '%s': %s", folder.c_str(), failure.message().c_str());
  if (status.type() != std::filesystem::file_type::directory) {
    return error(Code::kIo, "'%s' is not a folder", folder.c_str());
  }
  return {};
}

Result<EngineSources> plan_sources(const std::string& folder_or_shape) {
  std::error_code failure;
  const bool is_there = std::filesystem::exists(folder_or_shape, failure);
  if (is_there || failure || !released_shape(folder_or_shape)) return EngineSources::folder(folder_or_shape);
  return EngineSources::shape(folder_or_shape);
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& folder, const FileOpener& opener) {
  bool found_any = false;
  const auto read = [&](const ModelFile& file) -> Result<std::optional<std::string>> {
    const std::string path = folder + "/" + file.name;
    std::error_code failure;
    const bool is_there = std::filesystem::exists(path, failure);
    if (failure) return error(Code::kIo, "%s: %s", path.c_str(), failure.message().c_str());
    if (!is_there) return std::optional<std::string>();
    found_any = true;
    return std::optional<std::string>(TRY(read_text_file(opener, path, file.bytes_max)));
  };
  auto tokenizer = load_tokenizer(read);
  // A folder without any tokenizer is a model of ids; one with half of one is damaged.
  std::error_code failure;
  const bool has_part = found_any || std::filesystem::exists(folder + "/tokenizer_config.json", failure);
  if (!tokenizer && !has_part && tokenizer.error().code == Code::kFormat) return std::unique_ptr<Tokenizer>();
  if (!tokenizer) return with_context(tokenizer.take_error(), "%s", folder.c_str());
  return tokenizer;
}

std::string chat_format_name(const Tokenizer& tokenizer) {
  const ChatFormat* format = find_chat_format(tokenizer);
  return format != nullptr ? format->name : "";
}

std::string model_info_json(const ModelInfo& info, const Tokenizer* tokenizer) {
  const Json json = {
      {"family", info.family},
      {"name", info.name},
      {"layers", info.layer_count},
      {"moe_layers", info.moe_layer_count},
      {"experts", info.expert_count},
      {"experts_per_token", info.experts_per_token},
      {"hidden_size", info.hidden_size},
      {"vocabulary_size", info.vocabulary_size},
      {"context_tokens_max", info.context_tokens_max},
      {"parameters", info.parameter_count},
      {"active_parameters", info.active_parameter_count},
      {"tensors", info.tensor_count},
      {"checkpoint_bytes", info.checkpoint_bytes},
      {"trunk_bytes", info.trunk_bytes},
      {"trunk_format", text_or_null(info.trunk_format)},
      {"expert_bytes", info.expert_bytes},
      {"expert_format", text_or_null(info.expert_format)},
      {"working_set_bytes", info.moe_layer_count * info.experts_per_token * info.expert_bytes},
      {"vision", info.has_vision},
      {"stop_ids", info.stop_ids},
      {"tokenizer_vocabulary_size", tokenizer ? Json(tokenizer->vocabulary_size()) : Json(nullptr)},
      {"chat_format", tokenizer ? text_or_null(chat_format_name(*tokenizer)) : Json(nullptr)},
      {"synthetic", synthetic_text(info)},
      {"layer_kinds", info.layer_kinds},
  };
  // Names come from files of a model: bytes that are no UTF-8 must not throw.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> describe_model(const std::string& folder) {
  TRY(check_model_folder(folder));
  const std::unique_ptr<Tokenizer> tokenizer = TRY(open_tokenizer(folder, open_file));
  // Nothing large is kept: the directory, and room for one token.
  const auto pool = TRY(ThreadPool::create(1, {}));
  Budget budget(std::numeric_limits<size_t>::max());
  const Log log;
  const auto queue = TRY(ReadQueue::create({}, budget, log));
  const FileOpener opener = open_file;
  const ModelResources resources{*usable_kernels().back(), *pool, budget, *queue, opener, log};
  const std::unique_ptr<Model> model = TRY(open_model(folder, resources, {}));
  return model_info_json(model->info(), tokenizer.get());
}

std::string tokenizer_info_json(const Tokenizer& tokenizer) {
  const ChatFormat* format = find_chat_format(tokenizer);
  Json json = {{"vocabulary_size", tokenizer.vocabulary_size()},
               {"chat_format", text_or_null(format ? format->name : "")},
               {"thinking", format != nullptr && format->has_thinking},
               {"sampling", nullptr}};
  if (format && format->sampling) {
    json["sampling"] = {{"temperature", format->sampling->temperature}, {"top_p", format->sampling->top_p}};
  }
  return json.dump();
}

}  // namespace headrace
