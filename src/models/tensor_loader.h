#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/result.h"
#include "models/fingerprint.h"
#include "weights/checkpoint.h"
#include "weights/trunk.h"

namespace headrace {

/// Claims the trunk's tensors of a model by name, checks their shapes, and counts what it claims. Used while loading,
/// by one thread.
class TensorLoader {
 public:
  /// `prefix` stands before every name; all three outlive the loader.
  TensorLoader(Checkpoint& checkpoint, Trunk& trunk, Budget& budget, std::string prefix)
      : checkpoint_(checkpoint), trunk_(trunk), budget_(budget), prefix_(std::move(prefix)) {}

  Result<TrunkMatrix> matrix(const std::string& name, size_t rows, size_t cols);
  /// One whose rows are wanted all at once.
  Result<TrunkMatrix> whole_matrix(const std::string& name, size_t rows, size_t cols);
  Result<TrunkMatrix> row_table(const std::string& name, size_t rows, size_t cols);
  /// A small tensor of `count` numbers as float32.
  Result<std::vector<float>> vector(const std::string& name, size_t count);
  /// The first `count` numbers of a small tensor that may hold more.
  Result<std::vector<float>> vector_prefix(const std::string& name, size_t count);
  /// A tensor of `count` numbers that the checkpoint has but the model never uses (spec 9: the first layer's attention
  /// mixer).
  Status skip(const std::string& name, size_t count);

  /// Of all that was claimed so far: names, types and shapes in order, and the numbers of the small tensors.
  Hash128 digest() const { return hasher_.digest(); }

  std::string full_name(const std::string& name) const { return prefix_ + name; }
  uint64_t element_count() const { return element_count_; }
  uint64_t stored_bytes() const { return stored_bytes_; }
  /// The shares of the budget that the vectors hold; the model keeps them as long as the vectors.
  std::vector<Reservation> take_reservations() { return std::move(reservations_); }

 private:
  Status count(const std::string& name);
  std::vector<float> hashed(std::vector<float> numbers);

  Checkpoint& checkpoint_;
  Trunk& trunk_;
  Budget& budget_;
  std::string prefix_;
  uint64_t element_count_ = 0;
  uint64_t stored_bytes_ = 0;
  std::vector<Reservation> reservations_;
  Hasher hasher_;
};

}  // namespace headrace
