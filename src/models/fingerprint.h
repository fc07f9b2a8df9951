#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

struct XXH3_state_s;

namespace headrace {

/// 128 bits of XXH3.
struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

/// Hashes a stream of bytes; the result does not depend on how it was cut.
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void add(std::span<const std::byte> bytes);
  /// As eight bytes, the least first.
  void add(uint64_t number);
  /// With its length, so that neighbours cannot trade letters.
  void add(std::string_view text);
  /// Of what was added so far.
  Hash128 digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace headrace
