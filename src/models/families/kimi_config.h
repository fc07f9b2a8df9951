#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/activation.h"
#include "models/config_object.h"
#include "models/kda.h"
#include "models/mla.h"
#include "models/moe.h"

namespace headrace {

/// The configuration of a Kimi-Linear or Kimi K3 text model (spec 2), checked: every value is in a range that the rest
/// of the code may rely on, and every combination in it can run.
struct KimiConfig {
  std::string tensor_prefix;  ///< "" or "language_model."
  bool is_nested = false;     ///< Written as Kimi K3: the text model under text_config.
  bool has_vision = false;
  size_t vocabulary_size = 0;
  size_t hidden = 0;
  size_t dense_width = 0;
  size_t context_tokens_max = 0;
  float epsilon = 0;
  Activation activation;
  size_t residual_block = 0;  ///< attn_res_block_size; 0: plain residuals.
  KdaShape kda;
  MlaShape mla;
  MoeShape moe;  ///< experts 0: a dense model.
  std::vector<bool> layer_is_kda;
  std::vector<bool> layer_is_moe;
  std::vector<int32_t> stop_ids;

  size_t layer_count() const { return layer_is_kda.size(); }
};

/// Reads config.json. kFormat: damaged; kUnsupported: names the key and value that this build cannot run.
Result<KimiConfig> read_kimi_config(const ConfigObject& outer);

}  // namespace headrace
