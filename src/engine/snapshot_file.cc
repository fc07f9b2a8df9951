#include "engine/snapshot_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/buffer.h"
#include "base/ensure.h"
#include "io/alignment.h"

namespace headrace {
namespace {

/// Bytes of one read. More gains nothing, and has to fit no more than the caches of the processor.
constexpr size_t kReadBytesMax = size_t{4} << 20;

constexpr StatePart kParts[] = {StatePart::kRecurrent, StatePart::kPositional};

/// Hashes what is written, and collects small pieces.
class SnapshotSink {
 public:
  SnapshotSink(AtomicFile& file, std::span<std::byte> buffer) : file_(file), buffer_(buffer) {}

  Status write(std::span<const std::byte> bytes) {
    hasher_.add(bytes);
    return append(bytes);
  }
  Status finish() {
    const Hash128 hash = hasher_.digest();
    TRY(append(std::as_bytes(std::span(&hash, 1))));
    return flush();
  }

 private:
  Status append(std::span<const std::byte> bytes) {
    if (bytes.size() > buffer_.size() - filled_bytes_) TRY(flush());
    if (bytes.size() > buffer_.size()) return file_.write(bytes);
    std::ranges::copy(bytes, buffer_.begin() + static_cast<std::ptrdiff_t>(filled_bytes_));
    filled_bytes_ += bytes.size();
    return {};
  }
  Status flush() {
    const size_t size = std::exchange(filled_bytes_, 0);
    return file_.write(buffer_.first(size));
  }

  AtomicFile& file_;
  std::span<std::byte> buffer_;
  size_t filled_bytes_ = 0;
  Hasher hasher_;
};

static_assert(sizeof(Hash128) == SnapshotHeader::kHashBytes, "It is written as it lies in memory.");

Status check_fits(const SnapshotHeader& header, const SnapshotTarget& target) {
  if (header.model != target.model) return error(Code::kArgument, "it is of another model");
  if (header.numeric_mode != target.numeric_mode) return error(Code::kArgument, "it is of another numeric mode");
  // One token more may be known than was run.
  if (header.position > target.capacity_tokens || header.token_count > target.capacity_tokens + 1) {
    return error(Code::kArgument, "its %llu tokens do not fit a context of %zu",
                 static_cast<unsigned long long>(header.token_count), target.capacity_tokens);
  }
  const auto tokens = static_cast<size_t>(header.position);
  const bool has_sizes = header.vocabulary_size == target.vocabulary_size &&
                         header.recurrent_bytes == target.state.part_bytes(StatePart::kRecurrent, tokens) &&
                         header.positional_bytes == target.state.part_bytes(StatePart::kPositional, tokens);
  if (has_sizes) return {};
  return error(Code::kFormat, "its sizes are not those of this model");
}

}  // namespace

Status write_snapshot(AtomicFile& file, const SnapshotHeader& header, const SnapshotContents& contents,
                      std::span<std::byte> buffer) {
  ENSURE(header.token_count == contents.ids.size() && header.position == contents.state.position());
  ENSURE(header.note_bytes == contents.note.size());
  SnapshotSink sink(file, buffer);
  TRY(sink.write(encode_snapshot_header(header)));
  TRY(sink.write(std::as_bytes(contents.ids)));
  if (header.has_logits) TRY(sink.write(std::as_bytes(contents.logits)));
  for (const StatePart part : kParts) {
    TRY(contents.state.visit(part, contents.state.position(),
                             [&](std::span<std::byte> piece) { return sink.write(piece); }));
  }
  TRY(sink.write(std::as_bytes(std::span(contents.note))));
  constexpr std::array<std::byte, sizeof(float)> kZeros{};
  TRY(sink.write(std::span(kZeros).first(static_cast<size_t>(header.padded_note_bytes() - header.note_bytes))));
  return sink.finish();
}

Result<SnapshotReader> SnapshotReader::open(const std::string& path, const FileOpener& opener,
                                            std::span<std::byte> buffer) {
  ENSURE(buffer.size() >= AlignedMemory::kAlignment && buffer.size() % AlignedMemory::kAlignment == 0);
  std::unique_ptr<ReadableFile> file = TRY(opener(path, ReadMode::kDirect));
  // Rare drives have blocks above a page, for which the buffer need not be aligned.
  if (file->block_bytes() > AlignedMemory::kAlignment) file = TRY(opener(path, ReadMode::kBuffered));
  if (file->size_bytes() < SnapshotHeader::kBytes + SnapshotHeader::kHashBytes) {
    return error(Code::kFormat, "%s: it is no snapshot of a session", path.c_str());
  }
  return SnapshotReader(std::move(file), buffer.first(std::min(buffer.size(), kReadBytesMax)));
}

/// Puts the path in front of errors that do not have it yet: those of reads do.
template <class Body>
auto SnapshotReader::with_path(Body&& body) {
  auto result = body();
  if (!result && result.error().code != Code::kIo) {
    return decltype(result)(with_context(result.take_error(), "%s", file_->path().c_str()));
  }
  return result;
}

void SnapshotReader::rewind() {
  offset_ = 0;
  left_ = {};
  hasher_ = Hasher();
}

/// Reads on at `offset_`, which is a multiple of the buffer.
Status SnapshotReader::fill() {
  const uint64_t bytes = std::min<uint64_t>(buffer_.size(), file_->size_bytes() - offset_);
  ENSURE(bytes > 0);
  const std::span<std::byte> out = buffer_.first(static_cast<size_t>(align_up(bytes, file_->block_bytes())));
  TRY(read_at_least(*file_, offset_, out, static_cast<size_t>(bytes)));
  left_ = buffer_.first(static_cast<size_t>(bytes));
  offset_ += bytes;
  return {};
}

/// A look at the next bytes, at least one and at most `bytes_max`.
Result<std::span<const std::byte>> SnapshotReader::next(uint64_t bytes_max) {
  if (left_.empty()) TRY(fill());
  const std::span<const std::byte> bytes =
      left_.first(static_cast<size_t>(std::min<uint64_t>(left_.size(), bytes_max)));
  left_ = left_.subspan(bytes.size());
  hasher_.add(bytes);
  return bytes;
}

Status SnapshotReader::copy_next(std::span<std::byte> out) {
  while (!out.empty()) {
    const std::span<const std::byte> bytes = TRY(next(out.size()));
    std::ranges::copy(bytes, out.begin());
    out = out.subspan(bytes.size());
  }
  return {};
}

Result<SnapshotHeader> SnapshotReader::read_header() {
  rewind();
  std::array<std::byte, SnapshotHeader::kBytes> bytes{};
  TRY(copy_next(bytes));
  return parse_snapshot_header(bytes, file_->size_bytes());
}

Status SnapshotReader::check_ids(const SnapshotHeader& header) {
  for (uint64_t left = header.token_count * sizeof(int32_t); left > 0;) {
    const std::span<const std::byte> bytes = TRY(next(left));
    left -= bytes.size();
    // Sections begin at multiples of four bytes, and so does the buffer.
    for (const int32_t id : std::span(reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t))) {
      if (id >= 0 && static_cast<uint64_t>(id) < header.vocabulary_size) continue;
      return error(Code::kFormat, "it holds token id %d, outside the vocabulary of %llu", id,
                   static_cast<unsigned long long>(header.vocabulary_size));
    }
  }
  return {};
}

Status SnapshotReader::check_numbers(uint64_t bytes, const SnapshotTarget& target) {
  while (bytes > 0) {
    const std::span<const std::byte> part = TRY(next(bytes));
    bytes -= part.size();
    if (target.all_finite({reinterpret_cast<const float*>(part.data()), part.size() / sizeof(float)})) continue;
    return error(Code::kFormat, "it holds a number that is not finite");
  }
  return {};
}

Status SnapshotReader::skip(uint64_t bytes) {
  while (bytes > 0) bytes -= TRY(next(bytes)).size();
  return {};
}

Result<Hash128> SnapshotReader::check_hash() {
  const Hash128 expected = hasher_.digest();
  Hash128 stored;
  TRY(copy_next(std::as_writable_bytes(std::span(&stored, 1))));
  if (stored == expected) return stored;
  return error(Code::kFormat, "it is damaged: its hash is not that of its bytes");
}

Result<SnapshotHeader> SnapshotReader::check(const SnapshotTarget& target) {
  return with_path([&]() -> Result<SnapshotHeader> {
    const SnapshotHeader header = TRY(read_header());
    TRY(check_fits(header, target));
    TRY(check_ids(header));
    if (header.has_logits) TRY(check_numbers(header.vocabulary_size * sizeof(float), target));
    TRY(check_numbers(header.recurrent_bytes, target));
    TRY(check_numbers(header.positional_bytes, target));
    TRY(skip(header.padded_note_bytes()));
    checked_hash_ = TRY(check_hash());
    return header;
  });
}

/// Everything between the header and the hash.
Status SnapshotReader::copy_sections(const SnapshotHeader& header, SnapshotContents& contents) {
  ENSURE(header.token_count <= contents.ids.size());
  TRY(copy_next(std::as_writable_bytes(contents.ids.first(static_cast<size_t>(header.token_count)))));
  if (header.has_logits) TRY(copy_next(std::as_writable_bytes(contents.logits)));
  for (const StatePart part : kParts) {
    TRY(contents.state.visit(part, static_cast<size_t>(header.position),
                             [&](std::span<std::byte> piece) { return copy_next(piece); }));
  }
  contents.note.resize(static_cast<size_t>(header.padded_note_bytes()));
  TRY(copy_next(std::as_writable_bytes(std::span(contents.note))));
  contents.note.resize(static_cast<size_t>(header.note_bytes));
  return {};
}

Status SnapshotReader::read(const SnapshotHeader& header, SnapshotContents& contents) {
  return with_path([&]() -> Status {
    const SnapshotHeader again = TRY(read_header());
    if (again != header) return error(Code::kFormat, "it changed while it was read");
    TRY(copy_sections(header, contents));
    // Not only sound, but the one that was looked at.
    const Hash128 hash = TRY(check_hash());
    if (hash != checked_hash_) return error(Code::kFormat, "it changed while it was read");
    contents.state.set_position(static_cast<size_t>(header.position));
    return {};
  });
}

}  // namespace headrace
