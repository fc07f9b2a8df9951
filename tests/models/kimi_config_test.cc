#include "models/families/kimi_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/oracle_vectors.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

Json tiny_linear() {
  return test::load_oracle_vectors("models/tiny_linear")["config"];
}
Json tiny_k3() {
  return test::load_oracle_vectors("models/tiny_k3")["config"];
}

Result<KimiConfig> read(const Json& json) {
  const ConfigObject object = TRY(ConfigObject::wrap(json, "config.json"));
  return read_kimi_config(object);
}

/// The error of a config that must be refused, or an empty message.
Error refusal(const Json& json) {
  const auto config = read(json);
  EXPECT_FALSE(config);
  return config ? Error{Code::kIo, ""} : config.error();
}

TEST(KimiConfig, ReadsTheTinyLinearModel) {
  const auto config = read(tiny_linear());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config.value().tensor_prefix, "");
  EXPECT_EQ(config.value().layer_is_kda, (std::vector<bool>{true, true, true, false, true, false}));
  EXPECT_EQ(config.value().layer_is_moe, (std::vector<bool>{false, true, true, true, true, true}));
  EXPECT_FALSE(config.value().kda.gate_lower_bound);
  EXPECT_EQ(config.value().mla.query_rank, 0u);
  EXPECT_EQ(config.value().moe.latent, 0u);
  EXPECT_EQ(config.value().residual_block, 0u);
  EXPECT_EQ(config.value().activation.kind, Activation::Kind::kSwiglu);
}

TEST(KimiConfig, ReadsTheTinyK3Model) {
  const auto config = read(tiny_k3());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config.value().tensor_prefix, "language_model.");
  EXPECT_TRUE(config.value().has_vision);
  EXPECT_EQ(config.value().kda.gate_lower_bound, -5.0f);
  EXPECT_TRUE(config.value().kda.full_rank_gate);
  EXPECT_EQ(config.value().moe.shared_width, 192u);
  EXPECT_EQ(config.value().activation.linear_beta, 25.0f);
}

TEST(KimiConfig, ReadsAliasesOfOtherSoftware) {
  Json json = tiny_linear();
  json["num_experts_per_tok"] = json["num_experts_per_token"];
  json["n_routed_experts"] = json["num_experts"];
  json["n_shared_experts"] = json["num_shared_experts"];
  json["norm_topk_prob"] = json["moe_renormalize"];
  json["max_position_embeddings"] = json["model_max_length"];
  for (const char* key :
       {"num_experts_per_token", "num_experts", "num_shared_experts", "moe_renormalize", "model_max_length"}) {
    json.erase(key);
  }
  const auto config = read(json);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config.value().moe.experts, 8u);
}

TEST(KimiConfig, ReadsOptionalFeaturesByValueNotByPresence) {
  Json json = tiny_k3();
  json["text_config"]["q_lora_rank"] = 0;
  json["text_config"]["attn_res_block_size"] = nullptr;
  json["text_config"]["routed_expert_hidden_size"] = 0;
  json["text_config"]["mla_use_output_gate"] = false;
  json["text_config"]["linear_attn_config"]["gate_lower_bound"] = 0.0;
  const auto config = read(json);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config.value().mla.query_rank, 0u);
  EXPECT_EQ(config.value().residual_block, 0u);
  EXPECT_EQ(config.value().moe.latent, 0u);
  EXPECT_FALSE(config.value().mla.output_gate);
  ASSERT_TRUE(config.value().kda.gate_lower_bound) << "0 still selects the bounded form";
}

TEST(KimiConfig, RefusesUnsupportedValuesByName) {
  const std::pair<const char*, Json> changes[] = {
      {"mla_use_nope", false},         {"hidden_act", "gelu"},        {"moe_router_activation_func", "tanh"},
      {"num_nextn_predict_layers", 1}, {"tie_word_embeddings", true}, {"num_key_value_heads", 2},
      {"topk_method", "greedy"},
  };
  for (const auto& [key, value] : changes) {
    Json json = tiny_linear();
    json[key] = value;
    const Error error = refusal(json);
    EXPECT_EQ(error.code, Code::kUnsupported) << key;
    EXPECT_NE(error.message.find(key), std::string::npos) << error.message;
  }
}

TEST(KimiConfig, RefusesOtherQuantizationInEitherPlace) {
  for (const bool outer : {false, true}) {
    Json json = tiny_k3();
    Json quantization = json["text_config"]["quantization_config"];
    quantization["format"] = "pack-quantized";
    (outer ? json : json["text_config"])["quantization_config"] = quantization;
    EXPECT_EQ(refusal(json).code, Code::kUnsupported);
  }
  Json json = tiny_k3();
  json["text_config"]["quantization_config"]["config_groups"]["group_0"]["weights"]["group_size"] = 16;
  EXPECT_EQ(refusal(json).code, Code::kUnsupported);
}

TEST(KimiConfig, RefusesEveryKeyOfAShapeWhenAbsentZeroNegativeHugeOrOfAnotherType) {
  const char* const keys[] = {
      "vocab_size",       "hidden_size",       "num_hidden_layers",     "num_attention_heads",
      "kv_lora_rank",     "qk_nope_head_dim",  "qk_rope_head_dim",      "v_head_dim",
      "model_max_length", "intermediate_size", "moe_intermediate_size", "num_experts_per_token"};
  const Json bad[] = {nullptr, 0, -1, 1e30, 4294967296.0, 18446744073709551615ull, 2.5, "64", true, Json::array()};
  for (const char* key : keys) {
    for (const Json& value : bad) {
      Json json = tiny_linear();
      json[key] = value;
      const Error error = refusal(json);
      EXPECT_EQ(error.code, Code::kFormat) << key << " = " << value;
      EXPECT_NE(error.message.find(key), std::string::npos) << error.message;
    }
    Json json = tiny_linear();
    json.erase(key);
    EXPECT_EQ(refusal(json).code, Code::kFormat) << key;
  }
}

TEST(KimiConfig, RefusesBadNumbersOfTheLinearAttention) {
  const std::pair<const char*, Json> changes[] = {
      {"num_heads", 0},
      {"num_heads", -4},
      {"head_dim", 0},
      {"head_dim", nullptr},
      {"kda_layers", "1,2"},
      {"kda_layers", nullptr},
      {"kda_layers", {0}},
      {"kda_layers", {1, 2, 3, 5, 7}},
      {"kda_layers", {1, 2}},
      {"full_attn_layers", {3, 4, 6}},
      {"short_conv_kernel_size", 0},
      {"gate_lower_bound", 1.0},
      {"gate_lower_bound", "x"},
  };
  for (const auto& [key, value] : changes) {
    Json json = tiny_linear();
    json["linear_attn_config"][key] = value;
    EXPECT_EQ(refusal(json).code, Code::kFormat) << key << " = " << value;
  }
  Json json = tiny_linear();
  json["linear_attn_config"]["short_conv_kernel_size"] = 3;
  EXPECT_EQ(refusal(json).code, Code::kUnsupported);
  json = tiny_linear();
  json["linear_attn_config"] = 7;
  EXPECT_EQ(refusal(json).code, Code::kFormat);
}

TEST(KimiConfig, RefusesRoutingThatCannotWork) {
  const std::pair<const char*, Json> changes[] = {
      {"num_experts_per_token", 9},
      {"num_expert_group", 3},
      {"num_expert_group", 0},
      {"topk_group", 2},
      {"moe_renormalize", 1},
      {"moe_renormalize", nullptr},
      {"routed_scaling_factor", "2"},
      {"routed_scaling_factor", nullptr},
      {"first_k_dense_replace", nullptr},
      {"moe_layer_freq", 0},
      {"rms_norm_eps", 0.0},
      {"rms_norm_eps", -1e-5},
      {"rms_norm_eps", nullptr},
      {"eos_token_id", "x"},
  };
  for (const auto& [key, value] : changes) {
    Json json = tiny_linear();
    json[key] = value;
    EXPECT_EQ(refusal(json).code, Code::kFormat) << key << " = " << value;
  }
}

TEST(KimiConfig, RefusesTextThatIsNoJsonObject) {
  for (const char* text : {"", "{", "[]", "7", "{\"a\":1e999}", "\x01", "{\"a\":\"\xff\"}"}) {
    EXPECT_FALSE(parse_config(text, "config.json")) << text;
  }
}

TEST(KimiConfig, RefusesDeepNesting) {
  const std::string open(1000000, '[');
  const std::string close(1000000, ']');
  EXPECT_FALSE(parse_config("{\"model_type\":" + open, "config.json"));
  const auto closed = parse_config("{\"model_type\":" + open + close + "}", "config.json");
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("nested"), std::string::npos) << closed.error().message;
}

TEST(KimiConfig, ErrorsHoldNoControlCharacters) {
  Json json = tiny_linear();
  json["hidden_act"] = "\x1b[31mred\n";
  const Error error = refusal(json);
  EXPECT_EQ(error.message.find('\x1b'), std::string::npos);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace headrace
