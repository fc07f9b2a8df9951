#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "io/file.h"

namespace headrace::test {

/// What a fuzzer feeds, as a file. The contents outlive it.
class MemoryFile final : public ReadableFile {
 public:
  explicit MemoryFile(std::string path, std::string_view contents, size_t block_bytes = 1)
      : path_(std::move(path)), contents_(contents), block_bytes_(block_bytes) {}
  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return contents_.size(); }
  size_t block_bytes() const override { return block_bytes_; }
  bool is_direct() const override { return false; }
  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    if (offset >= contents_.size()) return size_t{0};
    const size_t size = std::min(out.size(), contents_.size() - static_cast<size_t>(offset));
    std::memcpy(out.data(), contents_.data() + offset, size);
    return size;
  }

 private:
  std::string path_;
  std::string_view contents_;
  size_t block_bytes_;
};

}  // namespace headrace::test
