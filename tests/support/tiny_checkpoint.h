#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/safetensors_writer.h"
#include "support/test_files.h"

namespace headrace::test {

/// Checkpoints of the Kimi family as small as a test wants them: every tensor that the config asks for, with hashed
/// values (specification of the family, 3 and 15). They share nothing with the loader under test.
struct TinyOptions {
  /// "mxfp4" or "bf16": how routed experts are stored. Empty: MXFP4 where the config has a quantization_config.
  std::string expert_format;
  /// Type of conv, o_norm, A_log, dt_bias and router bias: "BF16", "F16" or "F32". Empty: what the family uses.
  std::string small_type;
  /// Puts the tensors of each file into a seeded order and starts their data at an odd offset.
  std::optional<uint64_t> scatter_seed;
  /// With a scatter seed: also puts every tensor into a random file, so that records straddle files.
  bool scatter_files = false;
  /// tiktoken.model and tokenizer_config.json; only for vocabularies of at least 768.
  bool tokenizer = true;
};

/// The config.json of 15.2 and 15.3.
nlohmann::json tiny_linear_config();
nlohmann::json tiny_k3_config();

/// The tensors of a config in the order of the layers, without their bytes when `with_bytes` is false.
std::vector<WrittenTensor> tiny_tensors(const nlohmann::json& config, const TinyOptions& options = {},
                                        bool with_bytes = true);

/// The whole folder: config.json, generation_config.json, index, shards, tokenizer files. Flat configs (Kimi-Linear)
/// come in two shards with a layer split across them, nested ones (K3) in one per layer and three more.
Files tiny_checkpoint(const nlohmann::json& config, const TinyOptions& options = {});

/// The tokenizer files of 15.3: 256 bytes, 256 longer tokens, 256 specials. `k3` chooses the names.
Files tiny_tokenizer(bool k3);
/// The 512 ranks in order.
std::vector<std::string> tiny_ranks();

}  // namespace headrace::test
