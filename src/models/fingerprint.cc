#include "models/fingerprint.h"

#include <xxhash.h>

#include <bit>

#include "base/ensure.h"

namespace headrace {

static_assert(std::endian::native == std::endian::little, "Numbers are hashed as they lie in memory.");

Hasher::Hasher() : state_(XXH3_createState()) {
  ENSURE(state_ && XXH3_128bits_reset(state_.get()) == XXH_OK);
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Hasher::add(std::span<const std::byte> bytes) {
  ENSURE(XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK);
}

void Hasher::add(uint64_t number) {
  add(std::as_bytes(std::span(&number, 1)));
}

void Hasher::add(std::string_view text) {
  add(uint64_t{text.size()});
  add(std::as_bytes(std::span(text)));
}

Hash128 Hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {hash.low64, hash.high64};
}

}  // namespace headrace
