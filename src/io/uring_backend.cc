#include "io/uring_backend.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/ensure.h"

namespace headrace {
namespace {

/// Attempts to hand one transfer to a kernel that is short of memory.
constexpr int kSubmitAttemptsMax = 100;
constexpr std::chrono::milliseconds kSubmitPause{1};

std::string reason_of(int negative_error_number) {
  return std::generic_category().message(-negative_error_number);
}

bool holds(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

}  // namespace

const UringCalls kUringCalls = {
    .init = io_uring_queue_init_params,
    .submit = io_uring_submit,
    .register_files_sparse = io_uring_register_files_sparse,
    .update_files = io_uring_register_files_update,
    .register_buffers_sparse = io_uring_register_buffers_sparse,
    .update_buffers = io_uring_register_buffers_update_tag,
};

Result<std::unique_ptr<ReadBackend>> UringBackend::create(size_t depth, const Log& log, const UringCalls& calls) {
  std::unique_ptr<UringBackend> backend(new UringBackend(depth, log, calls));
  TRY(backend->start());
  return std::unique_ptr<ReadBackend>(std::move(backend));
}

Status UringBackend::start() {
  io_uring_params params = {};
  const int result = calls_.init(static_cast<unsigned>(slots_.size()), &ring_, &params);
  if (result < 0) return error(Code::kUnsupported, "io_uring: %s", reason_of(result).c_str());
  has_ring_ = true;
  // Came with the plain read, in Linux 5.6.
  if ((params.features & IORING_FEAT_RW_CUR_POS) == 0) {
    return error(Code::kUnsupported, "io_uring: this kernel's is too old");
  }
  file_serials_.fill(kNoSerial);
  has_file_table_ = calls_.register_files_sparse(&ring_, kFilesMax) == 0;
  return {};
}

UringBackend::~UringBackend() {
  if (has_ring_) io_uring_queue_exit(&ring_);
}

void UringBackend::issue(size_t place, const Transfer& transfer) {
  slots_[place].transfer = transfer;
  const std::optional<FileHandle> handle = transfer.file->handle();
  if (!handle || is_given_up_) return read_at_once(place);
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
  ENSURE(sqe);
  prepare(sqe, transfer, *handle);
  io_uring_sqe_set_data64(sqe, place);
  if (submit()) return;
  // What the kernel has not taken stays in the ring, which is never submitted again.
  is_given_up_ = true;
  log_.line(LogLevel::kWarn, "io_uring takes no more reads; going on without");
  read_at_once(place);
}

void UringBackend::read_at_once(size_t place) {
  Slot& slot = slots_[place];
  slot.outcome = slot.transfer.file->read_some(slot.transfer.offset, slot.transfer.out);
  over_at_once_.push(place);
}

void UringBackend::prepare(io_uring_sqe* sqe, const Transfer& transfer, const FileHandle& handle) {
  const std::optional<int> place = registered_place_of(handle);
  const int descriptor = place.value_or(handle.descriptor);
  const auto size = static_cast<unsigned>(transfer.out.size());
  if (const std::optional<int> chunk = chunk_of(transfer.out)) {
    io_uring_prep_read_fixed(sqe, descriptor, transfer.out.data(), size, transfer.offset, *chunk);
  } else {
    io_uring_prep_read(sqe, descriptor, transfer.out.data(), size, transfer.offset);
  }
  if (place) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
}

bool UringBackend::submit() {
  for (int attempt = 0; attempt < kSubmitAttemptsMax; ++attempt) {
    if (calls_.submit(&ring_) > 0) return true;
    std::this_thread::sleep_for(kSubmitPause);
  }
  return false;
}

std::optional<int> UringBackend::registered_place_of(const FileHandle& handle) {
  if (!has_file_table_) return std::nullopt;
  // Serials count up, so files that are open together seldom meet at one place.
  const auto place = static_cast<unsigned>(handle.serial % kFilesMax);
  if (file_serials_[place] != handle.serial) {
    file_serials_[place] = kNoSerial;
    if (calls_.update_files(&ring_, place, &handle.descriptor, 1) != 1) return std::nullopt;
    file_serials_[place] = handle.serial;
  }
  return static_cast<int>(place);
}

void UringBackend::collect(Sink sink) {
  for (io_uring_cqe* cqe = nullptr; io_uring_peek_cqe(&ring_, &cqe) == 0;) {
    const auto place = static_cast<size_t>(io_uring_cqe_get_data64(cqe));
    const int result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    const Transfer& transfer = slots_[place].transfer;
    sink(place, transfer.file->finish_read(transfer.offset, transfer.out, result));
  }
  while (!over_at_once_.is_empty()) {
    const size_t place = over_at_once_.pop();
    sink(place, std::move(slots_[place].outcome));
  }
}

void UringBackend::wait(Sink sink) {
  while (over_at_once_.is_empty()) {
    io_uring_cqe* cqe = nullptr;
    const int result = io_uring_wait_cqe(&ring_, &cqe);
    if (result == 0) break;
    ENSURE(result == -EINTR || result == -EAGAIN);
  }
  collect(sink);
}

size_t UringBackend::registered_chunk_count() const {
  return static_cast<size_t>(std::ranges::count_if(chunks_, [](const auto& chunk) { return !chunk.empty(); }));
}

std::optional<int> UringBackend::chunk_of(std::span<const std::byte> memory) const {
  const auto found = std::ranges::find_if(chunks_, [&](const auto& chunk) { return holds(chunk, memory); });
  if (memory.empty() || found == chunks_.end()) return std::nullopt;
  return static_cast<int>(found - chunks_.begin());
}

void UringBackend::register_memory(std::span<std::byte> memory) {
  if (!has_chunk_table_ && !was_memory_refused_) {
    const int result = calls_.register_buffers_sparse(&ring_, kChunksMax);
    has_chunk_table_ = result == 0;
    if (result < 0) say_that_memory_is_refused(result);
  }
  for (size_t begin = 0; begin < memory.size() && has_chunk_table_;) {
    const size_t size = std::min(memory.size() - begin, ReadQueue::kRegisteredChunkBytesMax);
    register_chunk(memory.subspan(begin, size));
    begin += size;
  }
}

void UringBackend::register_chunk(std::span<std::byte> chunk) {
  const auto unused = std::ranges::find_if(chunks_, [](const auto& known) { return known.empty(); });
  if (unused != chunks_.end()) put_chunk(static_cast<size_t>(unused - chunks_.begin()), chunk);
}

bool UringBackend::put_chunk(size_t index, std::span<std::byte> chunk) {
  const iovec buffer = {chunk.data(), chunk.size()};
  const int result = calls_.update_buffers(&ring_, static_cast<unsigned>(index), &buffer, nullptr, 1);
  if (result < 0) {
    say_that_memory_is_refused(result);
    return false;
  }
  chunks_[index] = chunk;
  return true;
}

void UringBackend::say_that_memory_is_refused(int result) {
  if (std::exchange(was_memory_refused_, true)) return;
  log_.line(LogLevel::kInfo, "io_uring cannot keep memory registered (%s); reads work without, at a little more work",
            reason_of(result).c_str());
}

void UringBackend::unregister_memory(std::span<std::byte> memory) {
  for (size_t index = 0; index < chunks_.size(); ++index) {
    if (chunks_[index].empty() || !holds(memory, chunks_[index])) continue;
    // A kernel that refuses, for want of memory, keeps the pages until the queue is gone; nothing reads to them.
    if (!put_chunk(index, {})) chunks_[index] = {};
  }
}

}  // namespace headrace
