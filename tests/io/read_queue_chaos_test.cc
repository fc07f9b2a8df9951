#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "io/queue_files.h"
#include "io/read_queue.h"
#include "support/scripted_backend.h"

namespace headrace {
namespace {

using test::BackendScript;
using test::Files;

constexpr size_t kSlotCount = 12;
constexpr size_t kSlotBytes = size_t{256} << 10;

/// An owner that does at random whatever an owner may do, and that checks at each step what it was promised: bytes of
/// reads that ended are those of the file, and memory that it got back is never written again.
class RandomOwner {
 public:
  RandomOwner(ReadQueue& queue, ReadableFile& file, const std::string& contents, unsigned seed)
      : queue_(queue), file_(file), contents_(contents), random_(seed) {
    slots_.resize(kSlotCount);
    memory_.fill(kMine);
  }

  void act() {
    Slot& slot = slots_[random_() % kSlotCount];
    switch (slot.state) {
      case SlotState::kMine:
        return submit(slot);
      case SlotState::kReading:
        return meddle(slot);
      case SlotState::kOrphaned:
        if (queue_.has_ended(slot.id)) {
          EXPECT_FALSE(queue_.take(slot.id));
          take_back(slot);
        }
        return;
    }
  }

  void finish() {
    for (Slot& slot : slots_) {
      if (slot.state == SlotState::kReading) end(slot, queue_.wait(slot.id));
    }
    queue_.drain();
    for (const Slot& slot : slots_) {
      EXPECT_TRUE(slot.state == SlotState::kOrphaned || is_untouched(slot));
    }
  }

  size_t successes = 0;
  size_t failures = 0;
  size_t orphans = 0;

 private:
  enum class SlotState : uint8_t { kMine, kReading, kOrphaned };
  struct Slot {
    SlotState state = SlotState::kMine;
    ReadId id{};
    std::vector<ReadPart> parts;
  };
  static constexpr std::byte kMine{0xa7};

  std::span<std::byte> memory_of(const Slot& slot) const {
    return memory_.all().subspan(static_cast<size_t>(&slot - slots_.data()) * kSlotBytes, kSlotBytes);
  }
  bool is_untouched(const Slot& slot) const {
    const auto memory = memory_of(slot);
    return memory[0] == kMine && std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0;
  }
  void take_back(Slot& slot) {
    slot.state = SlotState::kMine;
    std::memset(memory_of(slot).data(), std::to_integer<int>(kMine), kSlotBytes);
  }

  void submit(Slot& slot) {
    ASSERT_TRUE(is_untouched(slot));
    slot.parts.clear();
    const size_t part_count = 1 + random_() % 3;
    const size_t part_bytes = kSlotBytes / 4;
    for (size_t i = 0; i < part_count; ++i) {
      const uint64_t size = 1 + random_() % (part_bytes - 2 * file_.block_bytes());
      const ByteRange range{random_() % (contents_.size() - size), size};
      slot.parts.push_back(test::part_of(file_, range, memory_of(slot).subspan(i * part_bytes)));
    }
    slot.id = queue_.submit(slot.parts, static_cast<ReadPriority>(random_() % 3), ReadPurpose::kExperts);
    slot.state = SlotState::kReading;
  }

  void meddle(Slot& slot) {
    switch (random_() % 5) {
      case 0:
        return end(slot, queue_.wait(slot.id));
      case 1:
        return cancel(slot);
      case 2:
        return queue_.promote(slot.id, static_cast<ReadPriority>(random_() % 3));
      case 3:
        if (queue_.has_ended(slot.id)) end(slot, queue_.take(slot.id));
        return;
      default:
        return queue_.pump();
    }
  }

  void cancel(Slot& slot) {
    if (queue_.cancel(slot.id)) return take_back(slot);
    slot.state = SlotState::kOrphaned;
    ++orphans;
  }

  void end(Slot& slot, const Result<ReadResult>& result) {
    if (!result) {
      ++failures;
      EXPECT_EQ(result.error().code, Code::kIo);
    } else {
      ++successes;
      for (const ReadPart& part : slot.parts) ASSERT_TRUE(test::holds(part, contents_));
    }
    take_back(slot);
  }

  ReadQueue& queue_;
  ReadableFile& file_;
  const std::string& contents_;
  std::mt19937 random_;
  test::TestMemory memory_{kSlotCount * kSlotBytes >> 20};
  std::vector<Slot> slots_;
};

TEST(ReadQueueChaos, AScriptedDriveKeepsEveryPromise) {
  const Files files = {{"f", test::numbered_bytes(3'000'001)}};
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto file = test::memory_opener(files, seed % 2 == 0 ? 512 : 4096)("f", ReadMode::kDirect).take_value();
    BackendScript script{.last_first = seed % 3 == 0, .fail_every = 23, .short_every = 4};
    Budget budget(size_t{4} << 20);
    const size_t depth = 1 + seed;
    const auto queue = ReadQueue::create_over(test::make_scripted_backend(script, depth),
                                              {.depth = depth, .piece_bytes = ReadQueue::kPieceBytesMin}, budget)
                           .take_value();
    RandomOwner owner(*queue, *file, files.at("f"), seed);
    for (size_t step = 0; step < 1500; ++step) {
      script.arrivals_allowed = step % 3 == 0 ? 1 : 0;
      owner.act();
    }
    owner.finish();
    EXPECT_GT(owner.successes, 100u);
    EXPECT_GT(owner.failures, 0u);
    EXPECT_GT(owner.orphans, 0u);
  }
}

class ReadQueueChaosOnDisk : public testing::TestWithParam<ReadBackendKind> {};

TEST_P(ReadQueueChaosOnDisk, KeepsEveryPromise) {
  const std::string contents = test::numbered_bytes(3'000'001);
  const test::TempFolder folder;
  folder.write("data", contents);
  for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
    const auto file = open_file(folder.file("data"), mode).take_value();
    Budget budget(size_t{4} << 20);
    auto queue =
        ReadQueue::create({.backend = GetParam(), .depth = 4, .piece_bytes = ReadQueue::kPieceBytesMin}, budget, Log());
    if (!queue) GTEST_SKIP() << queue.error().message;
    RandomOwner owner(*queue.value(), *file, contents, 99);
    for (size_t step = 0; step < 3000; ++step) owner.act();
    owner.finish();
    EXPECT_GT(owner.successes, 100u);
    EXPECT_EQ(owner.failures, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadQueueChaosOnDisk,
                         testing::Values(ReadBackendKind::kUring, ReadBackendKind::kThreads),
                         [](const auto& kind) { return test::name_of(kind.param); });

}  // namespace
}  // namespace headrace
