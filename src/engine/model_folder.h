#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "io/file.h"
#include "models/model.h"
#include "text/tokenizer.h"

namespace headrace {

/// kIo when `folder` is not a folder that can be entered.
Status check_model_folder(const std::string& folder);

/// Where a model comes from for a plan: a folder, or without one of that name a released shape.
Result<EngineSources> plan_sources(const std::string& folder_or_shape);

/// The tokenizer of a model folder, or null when the folder holds no tokenizer at all. kFormat when it is damaged.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& folder, const FileOpener& opener = open_file);

/// Name of the format in which the model was trained to converse, told from its control tokens; empty when there is
/// none.
std::string chat_format_name(const Tokenizer& tokenizer);

/// The keys that `headrace info --help` lists, as a JSON object. `tokenizer` may be null.
std::string model_info_json(const ModelInfo& info, const Tokenizer* tokenizer);

/// The same of the model in `folder`: opens its directory, reads no weights to keep.
Result<std::string> describe_model(const std::string& folder);

/// `vocabulary_size`, `chat_format`, `thinking` and `sampling`, as a JSON object (see headrace_tokenizer_json).
std::string tokenizer_info_json(const Tokenizer& tokenizer);

}  // namespace headrace
