#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::test {

/// Values of tests' tensors, from a hash of their names (specification of the Kimi family, 15.1): reproducible without
/// any file. Written for the tests alone; the engine has no part in it.
struct ValueRule {
  enum class Kind : uint8_t {
    kUniform,     ///< offset + scale * u, u in [-1, 1).
    kPackedByte,  ///< The highest byte of the hash.
    kScaleByte,   ///< 121 to 124: block scales 2^-6 to 2^-3.
  };
  Kind kind = Kind::kUniform;
  double offset = 0;
  double scale = 1;
};

uint64_t fnv1a64(std::string_view text);

/// Hash number `index` of the tensor with this seed, which is fnv1a64 of its name.
uint64_t value_hash(uint64_t seed, uint64_t index);

/// offset + scale * u, computed in double and rounded to float32.
float uniform_value(const ValueRule& rule, uint64_t hash);

/// Nearest bfloat16, ties to even. `value` is finite.
uint16_t bf16_of(float value);
/// Nearest float16, ties to even. `value` is finite and within its range.
uint16_t f16_of(float value);

/// The stored bytes of a tensor: `type` is BF16, F16 or F32 for kUniform, U8 for the others. Elements from
/// `nonzero_count` on are zero.
std::string tensor_bytes(std::string_view name, const std::string& type, const ValueRule& rule, size_t element_count,
                         size_t nonzero_count);

}  // namespace headrace::test
