#include "weights/byte_stream.h"

#include <algorithm>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {
namespace {

bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}
bool is_of_number(char byte) {
  return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' || byte == 'E';
}

}  // namespace

ByteStream::ByteStream(ReadableFile& file, ByteRange range, std::span<std::byte> chunk)
    : file_(file), end_of_chunk_(range.offset), end_(range.end()), chunk_(chunk) {
  ENSURE(chunk.size() >= file.block_bytes() && chunk.size() % file.block_bytes() == 0);
  fill();
}

void ByteStream::advance() {
  step();
  // The parser keeps white space until the next token, so megabytes of it must not reach it.
  while (at_ == At::kSpace && !at_end() && is_space(next())) step();
}

void ByteStream::step() {
  measure_token(next());
  ++position_;
  if (position_ == available_ && status_) fill();
}

void ByteStream::fill() {
  position_ = available_ = 0;
  if (end_of_chunk_ == end_) return;
  const size_t block_bytes = file_.block_bytes();
  const uint64_t begin = align_down(end_of_chunk_, block_bytes);
  const size_t skipped_bytes = static_cast<size_t>(end_of_chunk_ - begin);
  const size_t wanted_bytes = static_cast<size_t>(std::min<uint64_t>(end_ - begin, chunk_.size()));
  const size_t read_bytes = static_cast<size_t>(align_up(wanted_bytes, block_bytes));
  const Result<ReadOutcome> outcome = read_at_least(file_, begin, chunk_.first(read_bytes), wanted_bytes);
  if (!outcome) {
    status_ = outcome.error();
    return;
  }
  bytes_read_ += outcome.value().transferred_bytes;
  position_ = skipped_bytes;
  available_ = wanted_bytes;
  end_of_chunk_ = begin + wanted_bytes;
}

void ByteStream::measure_token(char byte) {
  if (at_ == At::kEscape) {
    at_ = At::kString;
  } else if (at_ == At::kString) {
    if (byte == '\\') at_ = At::kEscape;
    if (byte == '"') at_ = At::kOutside;
  } else if (byte == '"') {
    at_ = At::kString;
    token_bytes_ = 0;
  } else if (is_of_number(byte)) {
    if (at_ != At::kNumber) token_bytes_ = 0;
    at_ = At::kNumber;
  } else if (!is_space(byte)) {
    at_ = At::kOutside;
  } else if (at_ == At::kSpace) {
    return;  // Never comes out.
  } else {
    at_ = At::kSpace;
  }
  if (++token_bytes_ <= kTokenBytesMax) return;
  status_ =
      error(Code::kFormat, "%s: no end of a string or number within %zu bytes", file_.path().c_str(), kTokenBytesMax);
  // Nothing more comes out, whatever the chunk still holds.
  available_ = position_ + 1;
}

}  // namespace headrace
