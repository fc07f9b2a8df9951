#include "io/thread_backend.h"

#include <system_error>
#include <utility>

#include "base/ensure.h"

namespace headrace {

Result<std::unique_ptr<ReadBackend>> ThreadBackend::create(size_t depth) {
  std::unique_ptr<ThreadBackend> backend(new ThreadBackend(depth));
  TRY(backend->start());
  return std::unique_ptr<ReadBackend>(std::move(backend));
}

Status ThreadBackend::start() {
  threads_.reserve(slots_.size());
  for (size_t index = 0; index < slots_.size(); ++index) {
    // The library reports a refused thread by an exception only; caught at once.
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& failure) {
      return error(Code::kUnsupported, "thread %zu of %zu for reading cannot be started: %s", index + 1, slots_.size(),
                   failure.what());
    }
  }
  return {};
}

ThreadBackend::~ThreadBackend() {
  {
    const MutexLock lock(mutex_);
    ENSURE(issued_.is_empty());
    is_stopping_ = true;
  }
  issued_changed_.notify_all();
}

void ThreadBackend::issue(size_t place, const Transfer& transfer) {
  slots_[place].transfer = transfer;
  {
    const MutexLock lock(mutex_);
    issued_.push(place);
  }
  issued_changed_.notify_one();
}

std::optional<size_t> ThreadBackend::next_issued() {
  const MutexLock lock(mutex_);
  while (issued_.is_empty() && !is_stopping_) issued_changed_.wait(mutex_);
  if (issued_.is_empty()) return std::nullopt;
  return issued_.pop();
}

void ThreadBackend::work() {
  while (const std::optional<size_t> place = next_issued()) {
    Slot& slot = slots_[*place];
    slot.outcome = slot.transfer.file->read_some(slot.transfer.offset, slot.transfer.out);
    {
      const MutexLock lock(mutex_);
      arrived_.push(*place);
    }
    arrived_changed_.notify_one();
  }
}

std::optional<size_t> ThreadBackend::next_arrived() {
  const MutexLock lock(mutex_);
  if (arrived_.is_empty()) return std::nullopt;
  return arrived_.pop();
}

void ThreadBackend::collect(Sink sink) {
  while (const std::optional<size_t> place = next_arrived()) sink(*place, std::move(slots_[*place].outcome));
}

void ThreadBackend::wait(Sink sink) {
  {
    const MutexLock lock(mutex_);
    while (arrived_.is_empty()) arrived_changed_.wait(mutex_);
  }
  collect(sink);
}

}  // namespace headrace
