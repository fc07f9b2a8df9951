#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headrace::test {

/// A control group of its own for the memory of one process, removed when the test is over. Needs the right to make
/// one: root, and a hierarchy of version 1 or 2 with the memory controller.
class MemoryCgroup {
 public:
  /// Nothing where there can be none; `reason` then says why.
  static std::optional<MemoryCgroup> create(std::string& reason);
  MemoryCgroup(MemoryCgroup&& other) noexcept;
  MemoryCgroup& operator=(MemoryCgroup&&) = delete;
  ~MemoryCgroup();

  bool set_limit(uint64_t bytes) const;
  /// Moves the calling process in. Called between fork and exec.
  bool enter() const;
  /// Largest use so far: memory, page cache and what the kernel keeps for it.
  uint64_t peak_bytes() const;
  /// Use now, of the same.
  uint64_t usage_bytes() const;
  /// What is in use now, by kind, for messages.
  std::string statistics() const;

 private:
  MemoryCgroup(std::string path, bool is_v2) : path_(std::move(path)), is_v2_(is_v2) {}

  std::string path_;
  bool is_v2_;
};

}  // namespace headrace::test
