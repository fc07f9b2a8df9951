#include "weights/byte_stream.h"

#include <algorithm>

#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {

ByteStream::ByteStream(ReadableFile& file, ByteRange range, std::span<std::byte> chunk)
    : file_(file), offset_(range.offset), end_(range.end()), chunk_(chunk) {
  ENSURE(chunk.size() >= file.block_bytes() && chunk.size() % file.block_bytes() == 0);
  fill();
}

void ByteStream::advance() {
  measure_token(next());
  ++position_;
  if (position_ == available_ && status_) fill();
}

void ByteStream::fill() {
  position_ = available_ = 0;
  if (offset_ == end_) return;
  const size_t block_bytes = file_.block_bytes();
  const uint64_t begin = align_down(offset_, block_bytes);
  const size_t skipped_bytes = static_cast<size_t>(offset_ - begin);
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
  offset_ = begin + wanted_bytes;
}

void ByteStream::measure_token(char byte) {
  if (in_string_) {
    ++token_bytes_;
    if (escaped_) {
      escaped_ = false;
    } else if (byte == '\\') {
      escaped_ = true;
    } else if (byte == '"') {
      in_string_ = false;
      token_bytes_ = 0;
    }
  } else if (byte == '"') {
    in_string_ = true;
    token_bytes_ = 0;
  } else if ((byte >= '0' && byte <= '9') || byte == '.') {
    ++token_bytes_;
  } else {
    token_bytes_ = 0;
  }
  if (token_bytes_ <= kTokenBytesMax) return;
  status_ = error(Code::kFormat, "%s: a string or number of more than %zu bytes", file_.path().c_str(), kTokenBytesMax);
  // Nothing more comes out, whatever the chunk still holds.
  available_ = position_ + 1;
}

}  // namespace headrace
