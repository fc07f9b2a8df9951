#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "base/result.h"
#include "io/file.h"

namespace headrace {

/// The bytes of a range of a file one after the other, through a chunk of memory that somebody else owns: what a JSON
/// parser reads from, so that a header of a hundred megabytes needs no memory of its own.
///
/// It is also the guard of the parser's own buffers: a string or number longer than kTokenBytesMax ends the stream, and
/// of white space between them only the first byte comes out. One thread.
class ByteStream {
 public:
  /// Longest string or number of a JSON text that is let through. The parser holds one at a time.
  static constexpr size_t kTokenBytesMax = 64 * 1024;

  /// `chunk` starts at a multiple of the file's block and holds at least one.
  ByteStream(ReadableFile& file, ByteRange range, std::span<std::byte> chunk);

  /// Whether there is no next byte: the end of the range, or a failure.
  bool at_end() const { return position_ == available_; }
  char next() const { return static_cast<char>(chunk_[position_]); }
  void advance();

  /// Offset of the next byte in the file.
  uint64_t offset() const { return end_of_chunk_ - (available_ - position_); }
  /// Why the stream ended before its range, if it did.
  const Status& status() const { return status_; }
  /// From the drive so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  void fill();
  void step();
  void measure_token(char byte);

  ReadableFile& file_;
  uint64_t end_of_chunk_;  ///< Offset of the first byte after it.
  const uint64_t end_;
  std::span<std::byte> chunk_;
  size_t position_ = 0;
  size_t available_ = 0;
  Status status_;
  uint64_t bytes_read_ = 0;

  enum class At : uint8_t { kOutside, kSpace, kNumber, kString, kEscape };
  At at_ = At::kOutside;
  size_t token_bytes_ = 0;
};

/// Single-pass iterator over a stream. A default one is the end.
class ByteStreamIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  ByteStreamIterator() = default;
  explicit ByteStreamIterator(ByteStream& stream) : stream_(&stream) {}

  char operator*() const { return stream_->next(); }
  ByteStreamIterator& operator++() {
    stream_->advance();
    return *this;
  }
  ByteStreamIterator operator++(int) {
    const ByteStreamIterator before = *this;
    stream_->advance();
    return before;
  }
  bool operator==(const ByteStreamIterator& other) const { return is_end() == other.is_end(); }

 private:
  bool is_end() const { return !stream_ || stream_->at_end(); }

  ByteStream* stream_ = nullptr;
};

}  // namespace headrace
