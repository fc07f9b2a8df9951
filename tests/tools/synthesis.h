#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/budget.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "models/model.h"
#include "support/test_files.h"
#include "tools/synth.h"

namespace headrace::test {

/// A folder with a config file, and room for the models that are made from it.
class Synthesis {
 public:
  explicit Synthesis(const nlohmann::json& config) { folder_.write("shape.json", config.dump()); }

  /// Small shards, so that layers straddle them.
  SynthOptions options(const std::string& name = "model") const;
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TempFolder folder_;
};

/// Writes without being stopped.
Result<SynthSummary> synthesize_all(const SynthOptions& options);

/// A checkpoint that was made, run over some ids.
struct MadeRun {
  ModelInfo info;
  std::vector<float> logits;                        ///< Of every token, one after the other.
  std::vector<std::vector<RoutedExperts>> routing;  ///< Of every token.
};
Result<MadeRun> run_made(const std::string& folder, size_t token_count);

}  // namespace headrace::test
