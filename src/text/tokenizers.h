#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// A file of a model folder by its name, and how long it may be.
struct ModelFile {
  const char* name;
  size_t bytes_max;
};

/// Contents of a file of the model folder; nothing when the folder has no such file. A file that is longer than
/// `bytes_max` or cannot be read is an Error, which is passed on.
using ReadModelFile = FunctionRef<Result<std::optional<std::string>>(const ModelFile& file)>;

/// Loads the tokenizer of a model folder with the loader whose file the folder has. kFormat when it has none, or when a
/// file that the loader needs is missing or damaged.
Result<std::unique_ptr<Tokenizer>> load_tokenizer(ReadModelFile read);

}  // namespace headrace
