#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"
#include "base/thread_annotations.h"

namespace headrace {

class Budget;

/// A share of a Budget, given back when destroyed. Move-only.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  size_t bytes() const { return bytes_; }

 private:
  friend class Budget;
  Reservation(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

  Budget* budget_ = nullptr;
  size_t bytes_ = 0;
};

/// The ceiling on memory: every large allocation holds a Reservation of it. Outlives its reservations. Callable from
/// any thread.
class Budget {
 public:
  explicit Budget(size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// Takes `bytes`, or fails with kBudget naming `purpose`, what is asked for, and what is left.
  Result<Reservation> reserve(size_t bytes, const char* purpose);

  size_t limit_bytes() const;
  /// A new ceiling. kBudget when more than that is in use: give back first.
  Status set_limit(size_t limit_bytes);
  size_t used_bytes() const;
  /// Largest use so far.
  size_t peak_bytes() const;

 private:
  friend class Reservation;
  void give_back(size_t bytes);

  mutable Mutex mutex_;
  size_t limit_bytes_ GUARDED_BY(mutex_);
  size_t used_bytes_ GUARDED_BY(mutex_) = 0;
  size_t peak_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
