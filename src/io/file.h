#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace headrace {

/// Bytes [offset, offset + size) of a file.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t end() const { return offset + size; }
};

/// A file as the kernel knows it, for those who hand it transfers themselves.
struct FileHandle {
  int descriptor = -1;
  /// Its own among all files that this process ever opens: numbers of descriptors are used again.
  uint64_t serial = 0;
};

/// A file open for reading at any place. Reads may come from several threads at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  virtual const std::string& path() const = 0;
  /// Size when it was opened.
  virtual uint64_t size_bytes() const = 0;
  /// Offset, length and address of every read must be multiples of this; 1 where the file takes any.
  virtual size_t block_bytes() const = 0;
  /// Whether reads bypass the page cache.
  virtual bool is_direct() const = 0;

  /// One attempt: the number of bytes read, 0 at the end of the file, fewer than asked for when the system felt like it
  /// (interruptions included: it returns 0 < n < size, or retries by itself when nothing was read). kIo with the
  /// system's reason when the read failed.
  virtual Result<size_t> read_some(uint64_t offset, std::span<std::byte> out) = 0;

  /// Nothing where only `read_some` reads: files of memory, files that tests watch.
  virtual std::optional<FileHandle> handle() const { return std::nullopt; }
  /// What `read_some` would have made of the same transfer, after it was done by handle: `result` bytes, or a negative
  /// error number. Repeats the transfer where `read_some` would (an interruption, a refusal of direct reads).
  virtual Result<size_t> finish_read(uint64_t offset, std::span<std::byte> out, int64_t result);
};

enum class ReadMode : uint8_t {
  kBuffered,  ///< Through the page cache; any offset and length.
  kDirect,    ///< Past the page cache; where the file system refuses, buffered reads that drop their pages behind them.
};

/// Opens files; tests put their own in to make reads fail, shorten or stall. Must be callable from the opening thread.
using FileOpener = std::function<Result<std::unique_ptr<ReadableFile>>(const std::string& path, ReadMode mode)>;

/// The real one. kIo when the file cannot be opened, with the system's reason.
Result<std::unique_ptr<ReadableFile>> open_file(const std::string& path, ReadMode mode);

/// What a read brought.
struct ReadOutcome {
  size_t available_bytes = 0;      ///< Leading bytes of the destination that are there.
  uint64_t transferred_bytes = 0;  ///< That the drive delivered: whole blocks, repeated ones counted again.
};

/// Reads into `out` from `offset` until at least `needed_bytes` of it are there, continuing after short reads. Offset,
/// length and address of `out` must be multiples of block_bytes(); `out` may reach past the end of the file, what is
/// needed may not: that is kFormat ("file ends N bytes early"). A failing read is kIo.
Result<ReadOutcome> read_at_least(ReadableFile& file, uint64_t offset, std::span<std::byte> out, size_t needed_bytes);

/// Reads exactly `out` from `offset`; the rules and errors of `read_at_least`.
Status read_exactly(ReadableFile& file, uint64_t offset, std::span<std::byte> out);

/// Reads a whole small file (configs, tokenizers): kFormat when it is larger than `size_bytes_max`,
/// before anything is allocated.
Result<std::string> read_text_file(const FileOpener& opener, const std::string& path, size_t size_bytes_max);

}  // namespace headrace
