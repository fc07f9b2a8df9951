#include "support/test_files.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/ensure.h"

namespace headrace::test {
namespace {

/// A file whose contents somebody else keeps in memory.
class MemoryFile final : public ReadableFile {
 public:
  MemoryFile(std::string path, const std::string& contents, size_t block_bytes)
      : path_(std::move(path)), contents_(contents), block_bytes_(block_bytes) {}

  const std::string& path() const override { return path_; }
  uint64_t size_bytes() const override { return contents_.size(); }
  size_t block_bytes() const override { return block_bytes_; }
  bool is_direct() const override { return block_bytes_ > 1; }

  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    ENSURE(offset % block_bytes_ == 0 && out.size() % block_bytes_ == 0);
    ENSURE(reinterpret_cast<uintptr_t>(out.data()) % block_bytes_ == 0);
    if (offset >= contents_.size()) return size_t{0};
    const size_t size = std::min(out.size(), contents_.size() - static_cast<size_t>(offset));
    if (size > 0) std::memcpy(out.data(), contents_.data() + offset, size);
    return size;
  }

 private:
  const std::string path_;
  const std::string& contents_;
  const size_t block_bytes_;
};

/// A file whose reads fail or fall short as its plan says.
class FaultyFile final : public ReadableFile {
 public:
  FaultyFile(std::unique_ptr<ReadableFile> inner, FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  const std::string& path() const override { return inner_->path(); }
  uint64_t size_bytes() const override { return inner_->size_bytes(); }
  size_t block_bytes() const override { return inner_->block_bytes(); }
  bool is_direct() const override { return inner_->is_direct(); }

  Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) override {
    const uint64_t number = plan_.read_count++;
    if (number == plan_.fail_at || number >= plan_.fail_from) {
      return error(Code::kIo, "read %s @%llu: injected failure", path().c_str(),
                   static_cast<unsigned long long>(offset));
    }
    const size_t block_bytes = inner_->block_bytes();
    if (plan_.bytes_per_read_max > 0) {
      const size_t most = std::max(plan_.bytes_per_read_max / block_bytes, size_t{1}) * block_bytes;
      out = out.first(std::min(out.size(), most));
    }
    Result<size_t> size = inner_->read_some(offset, out);
    if (!size) return size;
    plan_.bytes_read += size.value();
    // What was read beyond a short read's end is not there, whatever the memory holds.
    if (number == plan_.short_at && size.value() > 0) {
      const size_t kept = std::max<size_t>(1, std::min(size.value(), block_bytes) / 2);
      std::memset(out.data() + kept, 0xee, size.value() - kept);
      return kept;
    }
    return size;
  }

 private:
  const std::unique_ptr<ReadableFile> inner_;
  FaultPlan& plan_;
};

}  // namespace

TempFolder::TempFolder() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent && *parent ? parent : "/tmp") + "/headrace-test-XXXXXX";
  ENSURE(mkdtemp(path_.data()) != nullptr);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempFolder::write(const std::string& name, const std::string& contents) const {
  std::ofstream out(file(name), std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  ENSURE(out.good());
}

void TempFolder::write(const Files& files) const {
  for (const auto& [name, contents] : files) write(name, contents);
}

std::string plain_read(const std::string& path) {
  return plain_read(path, 0, std::filesystem::file_size(path));
}

std::string plain_read(const std::string& path, uint64_t offset, uint64_t size) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string contents(size, '\0');
  in.read(contents.data(), static_cast<std::streamsize>(size));
  ENSURE(in.good());
  return contents;
}

FileOpener memory_opener(const Files& files, size_t block_bytes, FaultPlan* plan) {
  return mixed_block_opener(files, {block_bytes, block_bytes}, plan);
}

FileOpener mixed_block_opener(const Files& files, std::pair<size_t, size_t> block_bytes, FaultPlan* plan) {
  FileOpener opener = [&files, block_bytes](const std::string& path,
                                            ReadMode) -> Result<std::unique_ptr<ReadableFile>> {
    const auto found = files.find(path);
    if (found == files.end()) return error(Code::kIo, "open %s: there is no such file of memory", path.c_str());
    const bool is_even = std::distance(files.begin(), found) % 2 == 0;
    const size_t block = is_even ? block_bytes.first : block_bytes.second;
    return std::unique_ptr<ReadableFile>(std::make_unique<MemoryFile>(path, found->second, block));
  };
  return plan ? faulty_opener(std::move(opener), *plan) : opener;
}

FileOpener faulty_opener(FileOpener inner, FaultPlan& plan) {
  return [inner = std::move(inner), &plan](const std::string& path,
                                           ReadMode mode) -> Result<std::unique_ptr<ReadableFile>> {
    if (plan.open_count++ == plan.fail_open_at) return error(Code::kIo, "open %s: injected failure", path.c_str());
    std::unique_ptr<ReadableFile> file = TRY(inner(path, mode));
    return std::unique_ptr<ReadableFile>(std::make_unique<FaultyFile>(std::move(file), plan));
  };
}

Files in_folder(const std::string& folder, const Files& files) {
  Files moved;
  const std::string prefix = folder + "/";
  for (const auto& [name, contents] : files) moved[prefix + name] = contents;
  return moved;
}

}  // namespace headrace::test
