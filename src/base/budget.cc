#include "base/budget.h"

#include <algorithm>

namespace headrace {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (budget_) budget_->give_back(bytes_);
  budget_ = std::exchange(other.budget_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Reservation::~Reservation() {
  if (budget_) budget_->give_back(bytes_);
}

Budget::~Budget() {
  ENSURE(used_bytes() == 0);
}

Result<Reservation> Budget::reserve(size_t bytes, const char* purpose) {
  const MutexLock lock(mutex_);
  const size_t left_bytes = limit_bytes_ - used_bytes_;
  if (bytes > left_bytes) {
    return error(Code::kBudget, "%s needs %zu bytes, but %zu of the budget of %zu bytes are left", purpose, bytes,
                 left_bytes, limit_bytes_);
  }
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return Reservation(this, bytes);
}

size_t Budget::limit_bytes() const {
  const MutexLock lock(mutex_);
  return limit_bytes_;
}

Status Budget::set_limit(size_t limit_bytes) {
  const MutexLock lock(mutex_);
  if (limit_bytes < used_bytes_) {
    return error(Code::kBudget, "a budget of %zu bytes is less than the %zu in use", limit_bytes, used_bytes_);
  }
  limit_bytes_ = limit_bytes;
  return {};
}

size_t Budget::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

size_t Budget::peak_bytes() const {
  const MutexLock lock(mutex_);
  return peak_bytes_;
}

void Budget::give_back(size_t bytes) {
  const MutexLock lock(mutex_);
  ENSURE(bytes <= used_bytes_);
  used_bytes_ -= bytes;
}

}  // namespace headrace
