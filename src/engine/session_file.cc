// Sessions as files.

#include "engine/session.h"
#include "engine/snapshot_file.h"

namespace headrace {

/// Where candidates of sampling are while tokens are chosen: nothing more need be taken of the budget.
std::span<std::byte> Session::file_buffer() const {
  return {reinterpret_cast<std::byte*>(memory_.candidates.view().data()), memory_.candidates.size_bytes()};
}

Status Session::save(const std::string& path, std::string_view note) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  TRY(check_usable());
  if (note.size() > SnapshotHeader::kNoteBytesMax) {
    return error(Code::kArgument, "a note of %zu bytes; at most %llu are allowed", note.size(),
                 static_cast<unsigned long long>(SnapshotHeader::kNoteBytesMax));
  }
  const SequenceState& state = *memory_.state;
  const size_t position = state.position();
  const SnapshotHeader header = {.model = engine_.model().fingerprint(),
                                 .numeric_mode = NumericMode::kExact,
                                 .has_logits = logits_at_ == position && position > 0,
                                 .token_count = token_count_,
                                 .position = position,
                                 .vocabulary_size = engine_.info().vocabulary_size,
                                 .recurrent_bytes = state.part_bytes(StatePart::kRecurrent, position),
                                 .positional_bytes = state.part_bytes(StatePart::kPositional, position),
                                 .note_bytes = note.size()};
  const auto file = TRY(AtomicFile::create(path, *engine_.sources_.write_calls));
  const SnapshotContents contents{*memory_.state, memory_.ids.row(0).first(token_count_), memory_.logits.row(0),
                                  std::string(note)};
  TRY(write_snapshot(*file, header, contents, file_buffer()));
  return file->commit();
}

Status Session::load(const std::string& path, std::string* note) {
  const EngineTurn turn(engine_);
  TRY(turn.status());
  SnapshotReader reader = TRY(SnapshotReader::open(path, engine_.sources_.opener, file_buffer()));
  const SnapshotTarget target = {.model = engine_.model().fingerprint(),
                                 .numeric_mode = NumericMode::kExact,
                                 .vocabulary_size = engine_.info().vocabulary_size,
                                 .capacity_tokens = capacity_tokens(),
                                 .state = *memory_.state,
                                 .all_finite = engine_.kernels().all_finite};
  const SnapshotHeader header = TRY(reader.check(target));
  needs_reset_ = true;
  SnapshotContents contents{*memory_.state, memory_.ids.row(0), memory_.logits.row(0), {}};
  TRY(reader.read(header, contents));
  if (note) *note = std::move(contents.note);
  snapshots_.forget_after(0);
  token_count_ = static_cast<size_t>(header.token_count);
  logits_at_ = header.has_logits ? static_cast<size_t>(header.position) : 0;
  needs_reset_ = false;
  return {};
}

}  // namespace headrace
