#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "formats/nibble_table.h"

namespace headrace {

/// What an instruction set gives: 16 float lanes. Every operation is the IEEE one in each lane, so all instruction sets
/// give the same bits; there is no minimum, maximum or reciprocal, whose corner cases differ. NaN payloads are not
/// promised.
///
/// * `load`, `store` at any alignment of float; `load_bytes` and `load_upper_halves` (16-bit codes into the upper half
///   of each lane, zeros below) at any address.
/// * `bits`: the lane whose pattern is the argument. `bit_and`, `bit_or`, `shift_right_3` (zeros come in) work on
///   patterns.
/// * `fma(a, b, c)` = a * b + c, rounded once. `greater` is false for NaN. `select(m, a, b)` = m ? a : b.
/// * `power_of_two(t)` = 2^n in each lane for t = n + 1.5 * 2^23, as rounding by that constant leaves it, where n is at
///   least -126 and at most 127; anything where t is NaN.
/// * `sum`: lane l with l + 8, then + 4, + 2, + 1.
/// * `look_up` reads 32 nibbles from 16 bytes, low nibble first, and gives their numbers in the table. Nibble i of each
///   16 lands in the lane to which `to_look_up_order` moves lane i (whatever costs an instruction set least);
///   `to_natural_order` moves it back.
/// * `in_registers` changes nothing: it stops a compiler that would read memory again at each use.
///
/// Constants tell how many vectors fit into registers beside what feeds them: `kSums` sums of a product that decodes as
/// it goes, of at most `kTileRows` rows and `kTileTokens` tokens; `kPanelRows` x `kPanelTokens` sums of a product of
/// rows that were decoded to memory, or 0 where the first kind is always the faster; `kColumnVectors` x `kColumnTokens`
/// sums of a transposed product.
template <class V>
concept Vector = requires(V v, const float* source, float* target, const std::byte* bytes, typename V::Mask mask,
                          const NibbleTable& table, V (&pair)[2]) {
  { V::broadcast(1.0F) } -> std::same_as<V>;
  { V::bits(uint32_t{}) } -> std::same_as<V>;
  { V::load(source) } -> std::same_as<V>;
  { V::load_bytes(bytes) } -> std::same_as<V>;
  { V::load_upper_halves(bytes) } -> std::same_as<V>;
  {v.store(target)};
  { v + v } -> std::same_as<V>;
  { v - v } -> std::same_as<V>;
  { v* v } -> std::same_as<V>;
  { v / v } -> std::same_as<V>;
  { fma(v, v, v) } -> std::same_as<V>;
  { square_root(v) } -> std::same_as<V>;
  { bit_and(v, v) } -> std::same_as<V>;
  { bit_or(v, v) } -> std::same_as<V>;
  { shift_right_3(v) } -> std::same_as<V>;
  { power_of_two(v) } -> std::same_as<V>;
  { greater(v, v) } -> std::same_as<typename V::Mask>;
  { select(mask, v, v) } -> std::same_as<V>;
  { sum(v) } -> std::same_as<float>;
  {V::look_up(table, bytes, pair)};
  { in_registers(v) } -> std::same_as<V>;
  { to_look_up_order(v) } -> std::same_as<V>;
  { to_natural_order(v) } -> std::same_as<V>;
};

/// Lanes of every vector.
inline constexpr size_t kLanes = 16;

}  // namespace headrace
