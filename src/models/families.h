#pragma once

#include <memory>
#include <string>

#include "models/config_object.h"
#include "models/model.h"

namespace headrace {

/// What a family builds a model from: the folder, its config.json, and what the caller lends.
struct ModelSource {
  const std::string& folder;
  const ConfigObject& config;
  const ModelResources& resources;
  const ModelOptions& options;
};

/// The code that turns a configuration into a forward pass.
struct Family {
  const char* name;
  /// Whether `config` describes a model of this family, by its outer `model_type`.
  bool (*recognizes)(const std::string& model_type);
  Result<std::unique_ptr<Model>> (*open)(const ModelSource& source);
};

bool recognizes_kimi(const std::string& model_type);
Result<std::unique_ptr<Model>> open_kimi(const ModelSource& source);

}  // namespace headrace
