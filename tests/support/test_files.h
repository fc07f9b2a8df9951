#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "io/file.h"

namespace headrace::test {

/// Files of one folder: name to contents.
using Files = std::map<std::string, std::string>;

/// A folder that is removed with everything in it when the test is over. In $TMPDIR, or /tmp.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& contents) const;
  void write(const Files& files) const;

 private:
  std::string path_;
};

/// Contents of a file, read by a plain stream: what readers of ours are compared with. Ends the test when it fails.
std::string plain_read(const std::string& path);
std::string plain_read(const std::string& path, uint64_t offset, uint64_t size);

/// What the reads of files under test do and see. Shared by all files of an opener; any thread.
struct FaultPlan {
  static constexpr uint64_t kNever = UINT64_MAX;

  uint64_t fail_at = kNever;       ///< This read fails with kIo, counted from 0. Later ones work again.
  uint64_t fail_from = kNever;     ///< This read and all after it fail.
  uint64_t short_at = kNever;      ///< This read brings half a block, at least a byte.
  size_t bytes_per_read_max = 0;   ///< Every read is at most this long, and at least one block; 0: any length.
  uint64_t fail_open_at = kNever;  ///< This opening fails.
  std::atomic<uint64_t> read_count = 0;
  std::atomic<uint64_t> open_count = 0;
  std::atomic<uint64_t> bytes_read = 0;

  void reset_counts() { read_count = open_count = bytes_read = 0; }
};

/// Opens files of memory: `files` by path ("<folder>/<name>"), with the block that a direct reader would see. Reads
/// that are not aligned end the program, as they would fail on a drive. `files` and `plan` (may be null) outlive it.
FileOpener memory_opener(const Files& files, size_t block_bytes = 1, FaultPlan* plan = nullptr);

/// The same with files of two blocks in turn, in the order of their paths: drives differ.
FileOpener mixed_block_opener(const Files& files, std::pair<size_t, size_t> block_bytes, FaultPlan* plan = nullptr);

/// Puts the faults of `plan` in front of another opener's files.
FileOpener faulty_opener(FileOpener inner, FaultPlan& plan);

/// The files with `folder` and a slash in front of their names.
Files in_folder(const std::string& folder, const Files& files);

}  // namespace headrace::test
