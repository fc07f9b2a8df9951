#include "support/scripted_backend.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/ensure.h"

namespace headrace::test {
namespace {

class ScriptedBackend final : public ReadBackend {
 public:
  ScriptedBackend(BackendScript& script, size_t depth) : script_(script), depth_(depth) {}
  ~ScriptedBackend() override { script_.destroyed_with = pending_.size(); }

  const char* name() const override { return "script"; }

  void issue(size_t place, const Transfer& transfer) override {
    ENSURE(place < depth_);
    ENSURE(std::ranges::none_of(pending_, [&](const Pending& pending) { return pending.place == place; }));
    pending_.push_back({place, script_.issued.size(), transfer});
    script_.issued.push_back({transfer.offset, transfer.out.size()});
    script_.in_flight = pending_.size();
    script_.in_flight_peak = std::max(script_.in_flight_peak, script_.in_flight);
  }

  void collect(Sink sink) override {
    while (!pending_.empty() && script_.arrivals_allowed > 0) {
      if (script_.arrivals_allowed != BackendScript::kAll) --script_.arrivals_allowed;
      hand_over_one(sink);
    }
  }

  void wait(Sink sink) override {
    ENSURE(!pending_.empty());
    if (script_.arrivals_allowed == 0) script_.arrivals_allowed = 1;
    collect(sink);
  }

 private:
  struct Pending {
    size_t place = 0;
    uint64_t number = 0;
    Transfer transfer;
  };

  void hand_over_one(Sink sink) {
    const auto chosen = script_.last_first ? pending_.end() - 1 : pending_.begin();
    const Pending arrived = *chosen;
    pending_.erase(chosen);
    script_.in_flight = pending_.size();
    sink(arrived.place, outcome_of(arrived));
  }

  Result<size_t> outcome_of(const Pending& pending) const {
    const Transfer& transfer = pending.transfer;
    if (pending.number == script_.fail_at || pending.number % script_.fail_every == script_.fail_every - 1) {
      return error(Code::kIo, "read %s @%llu: injected failure", transfer.file->path().c_str(),
                   static_cast<unsigned long long>(transfer.offset));
    }
    const size_t size = TRY(transfer.file->read_some(transfer.offset, transfer.out));
    if (size < 2 || pending.number % script_.short_every != script_.short_every - 1) return size;
    // What lies beyond a short read's end is not there, whatever the memory holds.
    const size_t kept = size / 2 - (size > 2 ? 1 : 0);
    std::memset(transfer.out.data() + kept, 0xee, size - kept);
    return kept;
  }

  BackendScript& script_;
  const size_t depth_;
  std::vector<Pending> pending_;
};

}  // namespace

std::unique_ptr<ReadBackend> make_scripted_backend(BackendScript& script, size_t depth) {
  return std::make_unique<ScriptedBackend>(script, depth);
}

}  // namespace headrace::test
