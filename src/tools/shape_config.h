#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/families/kimi_config.h"

namespace headrace {

/// The config.json of a shape: of a released model by its name, or out of a file. kArgument when `shape` is neither.
Result<std::string> shape_config(const std::string& shape);

/// What to make smaller; 0 leaves it.
struct ShapeChanges {
  size_t layers = 0;   ///< The first so many, at most as many as there are.
  size_t experts = 0;  ///< Routed experts of a layer, at least as many as a token uses.
};

/// `config` with the changes made. kArgument when one is impossible, kFormat when the text is damaged; `path` stands
/// in errors.
Result<std::string> changed_config(const std::string& config, const std::string& path, const ShapeChanges& changes);

/// The layer whose tensors stand for those of each, when only `shared_layers` (at least 1) of each kind are stored: the
/// first ones of the kind, in turn. Kinds are combinations of attention and feed-forward part.
std::vector<size_t> shared_layer_sources(const KimiConfig& config, size_t shared_layers);

}  // namespace headrace
