#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/queue_files.h"
#include "io/read_queue.h"
#include "support/scripted_backend.h"

namespace headrace {
namespace {

using test::BackendScript;
using test::Files;
using test::holds;
using test::part_of;
using test::TestMemory;

constexpr size_t kPiece = ReadQueue::kPieceBytesMin;
constexpr size_t kSpeculativePiece = ReadQueue::kSpeculativePieceBytes;
constexpr size_t kMegabyte = size_t{1} << 20;

/// A queue over a script, and a file of memory of which the n-th read reads the n-th megabyte to the n-th megabyte.
class ReadQueueOrder : public testing::Test {
 protected:
  ReadQueueOrder() { file_ = test::memory_opener(files_, 512)("f", ReadMode::kDirect).take_value(); }

  void make_queue(size_t depth, size_t piece_bytes = kMegabyte) {
    queue_ = ReadQueue::create_over(test::make_scripted_backend(script_, depth > 0 ? depth : ReadQueue::kDefaultDepth),
                                    {.depth = depth, .piece_bytes = piece_bytes}, budget_)
                 .take_value();
  }
  ReadPart part(size_t megabyte, size_t size = kMegabyte) {
    return part_of(*file_, {megabyte * kMegabyte, size}, memory_.from(megabyte));
  }
  ReadId submit(size_t megabyte, ReadPriority priority, size_t size = kMegabyte) {
    const ReadPart wanted = part(megabyte, size);
    return queue_->submit({&wanted, 1}, priority, ReadPurpose::kExperts);
  }
  bool is_untouched(const ReadPart& wanted) const {
    return std::ranges::all_of(wanted.out, [](std::byte byte) { return byte == kUntouched; });
  }
  /// The megabyte of each transfer that was issued, in order.
  std::vector<size_t> issued() const {
    std::vector<size_t> megabytes;
    for (const BackendScript::Issued& transfer : script_.issued) megabytes.push_back(transfer.offset / kMegabyte);
    return megabytes;
  }

  static constexpr std::byte kUntouched{0xc3};
  const Files files_ = {{"f", test::numbered_bytes(16 * kMegabyte)}};
  const std::string& contents_ = files_.at("f");
  Budget budget_{size_t{32} << 20};
  TestMemory memory_{16};
  BackendScript script_{.arrivals_allowed = 0};
  std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<ReadQueue> queue_;
};

TEST_F(ReadQueueOrder, DemandGoesBeforeTrunkBeforeSpeculation) {
  make_queue(1);
  submit(0, ReadPriority::kTrunk);  // Fills the depth.
  submit(1, ReadPriority::kSpeculative);
  submit(2, ReadPriority::kTrunk);
  submit(3, ReadPriority::kDemand);
  submit(4, ReadPriority::kTrunk);
  submit(5, ReadPriority::kDemand);
  queue_->drain();
  EXPECT_EQ(issued(), (std::vector<size_t>{0, 3, 5, 2, 4, 1}));
}

TEST_F(ReadQueueOrder, KeepsNoMoreInFlightThanItsDepth) {
  for (const size_t depth : {1u, 2u, 5u}) {
    make_queue(depth, kPiece);
    script_ = {.arrivals_allowed = 0};
    for (size_t i = 0; i < 6; ++i) submit(i, ReadPriority::kDemand);
    EXPECT_EQ(script_.in_flight, depth);
    queue_->drain();
    EXPECT_EQ(script_.in_flight_peak, depth);
    EXPECT_EQ(queue_->counters().in_flight_bytes_peak, depth * kPiece);
  }
}

TEST_F(ReadQueueOrder, WithoutADepthLongReadsAreFewAndShortReadsMany) {
  const auto expect_in_flight = [&](size_t read_bytes, size_t count) {
    script_ = {.arrivals_allowed = 0};
    make_queue(0, 0);
    for (size_t i = 0; i < 10; ++i) submit(0, ReadPriority::kDemand, read_bytes);
    EXPECT_EQ(script_.in_flight, count) << read_bytes;
    queue_->drain();
  };
  expect_in_flight(16 * kMegabyte, 3);  // In halves.
  expect_in_flight(kMegabyte, ReadQueue::kDefaultDepth);
}

TEST_F(ReadQueueOrder, FillsTheRoomWheneverTheOwnerCallsIn) {
  make_queue(1);
  submit(0, ReadPriority::kDemand);
  const ReadId second = submit(1, ReadPriority::kDemand);
  EXPECT_EQ(issued().size(), 1u);
  script_.arrivals_allowed = 1;
  queue_->pump();
  EXPECT_EQ(issued().size(), 2u);
  EXPECT_FALSE(queue_->has_ended(second));
  script_.arrivals_allowed = 1;
  EXPECT_TRUE(queue_->has_ended(second));
}

TEST_F(ReadQueueOrder, PiecesOfAReadAreOfAboutOneSize) {
  make_queue(8);
  submit(0, ReadPriority::kDemand, 5 * kMegabyte / 2);
  ASSERT_EQ(script_.issued.size(), 3u);
  size_t next = 0;
  for (const BackendScript::Issued& transfer : script_.issued) {
    EXPECT_EQ(transfer.offset, next);
    EXPECT_LE(transfer.size, kMegabyte);
    EXPECT_GE(transfer.size, kMegabyte / 2);
    next += transfer.size;
  }
  EXPECT_EQ(next, 5 * kMegabyte / 2);
  queue_->drain();
}

TEST_F(ReadQueueOrder, SpeculationGoesInSmallPiecesOneAtATime) {
  make_queue(4, 8 * kMegabyte);
  const ReadId first = submit(0, ReadPriority::kSpeculative, 5 * kMegabyte);
  const ReadId second = submit(5, ReadPriority::kSpeculative, kMegabyte);
  while (!queue_->has_ended(first) || !queue_->has_ended(second)) {
    EXPECT_LE(script_.in_flight, 1u);
    script_.arrivals_allowed = 1;
  }
  EXPECT_EQ(script_.in_flight_peak, 1u);
  EXPECT_EQ(script_.issued.size(), 4u);
  for (const BackendScript::Issued& transfer : script_.issued) EXPECT_LE(transfer.size, kSpeculativePiece);
  EXPECT_TRUE(queue_->take(first));
  EXPECT_TRUE(holds(part(0, 5 * kMegabyte), contents_));
}

TEST_F(ReadQueueOrder, OtherReadsGoBesideASpeculativePiece) {
  make_queue(3);
  submit(0, ReadPriority::kSpeculative);
  submit(1, ReadPriority::kSpeculative);
  submit(2, ReadPriority::kTrunk);
  submit(3, ReadPriority::kDemand);
  EXPECT_EQ(issued(), (std::vector<size_t>{0, 2, 3}));
  queue_->drain();
}

TEST_F(ReadQueueOrder, PromotedReadsOvertake) {
  make_queue(1);
  submit(0, ReadPriority::kDemand);
  submit(1, ReadPriority::kTrunk);
  const ReadId guess = submit(2, ReadPriority::kSpeculative);
  const ReadId trunk = submit(3, ReadPriority::kTrunk);
  queue_->promote(guess, ReadPriority::kDemand);
  queue_->promote(trunk, ReadPriority::kSpeculative);  // Priorities are never lowered.
  queue_->drain();
  EXPECT_EQ(issued(), (std::vector<size_t>{0, 2, 1, 3}));
}

TEST_F(ReadQueueOrder, APromotedReadGoesOnInFullPieces) {
  make_queue(2, 8 * kMegabyte);
  const ReadId guess = submit(0, ReadPriority::kSpeculative, 9 * kMegabyte);
  queue_->promote(guess, ReadPriority::kDemand);
  ASSERT_TRUE(queue_->wait(guess));
  ASSERT_EQ(script_.issued.size(), 2u);
  EXPECT_LE(script_.issued[0].size, kSpeculativePiece);
  EXPECT_GT(script_.issued[1].size, 7 * kMegabyte);
  EXPECT_TRUE(holds(part(0, 9 * kMegabyte), contents_));
}

TEST_F(ReadQueueOrder, WaitingPromotes) {
  make_queue(1);
  submit(0, ReadPriority::kDemand);
  submit(1, ReadPriority::kTrunk);
  const ReadId guess = submit(2, ReadPriority::kSpeculative);
  ASSERT_TRUE(queue_->wait(guess));
  EXPECT_EQ(issued(), (std::vector<size_t>{0, 2, 1}));
}

TEST_F(ReadQueueOrder, ReadsArriveInAnyOrderWithTheirOwnBytes) {
  script_.last_first = true;
  make_queue(4, kPiece);
  std::vector<ReadId> ids;
  for (size_t i = 0; i < 8; ++i) ids.push_back(submit(i, ReadPriority::kDemand));
  while (!ids.empty()) {
    const size_t index = queue_->wait_any(ids);
    ASSERT_TRUE(queue_->take(ids[index]));
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(index));
  }
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(holds(part(i), contents_)) << i;
}

TEST_F(ReadQueueOrder, NamesTheFirstOfSeveralThatHaveEnded) {
  script_.arrivals_allowed = BackendScript::kAll;
  make_queue(4);
  const ReadId ids[] = {submit(0, ReadPriority::kDemand), submit(1, ReadPriority::kDemand)};
  EXPECT_EQ(queue_->wait_any(ids), 0u);
  queue_->drain();
  EXPECT_EQ(queue_->wait_any(ids), 0u);
  const ReadId turned[] = {ids[1], ids[0]};
  EXPECT_EQ(queue_->wait_any(turned), 0u);
}

TEST_F(ReadQueueOrder, CancellingAWaitingReadGivesItsMemoryBackAtOnce) {
  make_queue(1);
  memory_.fill(kUntouched);
  submit(0, ReadPriority::kDemand);
  const ReadId waiting = submit(1, ReadPriority::kDemand);
  EXPECT_TRUE(queue_->cancel(waiting));
  queue_->drain();
  EXPECT_TRUE(is_untouched(part(1)));
  EXPECT_EQ(issued(), (std::vector<size_t>{0}));
  EXPECT_EQ(queue_->counters().orphaned_count, 0u);
}

TEST_F(ReadQueueOrder, AnOrphanKeepsItsMemoryUntilItHasEnded) {
  make_queue(1, kPiece);
  memory_.fill(kUntouched);
  const ReadId orphan = submit(0, ReadPriority::kDemand);
  const ReadId other = submit(1, ReadPriority::kDemand, kPiece);
  EXPECT_FALSE(queue_->cancel(orphan));
  EXPECT_FALSE(queue_->has_ended(orphan));
  EXPECT_FALSE(queue_->cancel(orphan)) << "asking again changes nothing";
  script_.arrivals_allowed = 1;
  EXPECT_TRUE(queue_->has_ended(orphan));
  EXPECT_FALSE(is_untouched(part(0, kPiece))) << "its transfer could not be taken back";
  EXPECT_EQ(queue_->take(orphan).error().code, Code::kCancelled);
  // From here the memory is the caller's.
  memory_.fill(kUntouched);
  EXPECT_TRUE(queue_->wait(other));
  EXPECT_TRUE(is_untouched(part(0)));
  EXPECT_EQ(script_.issued.size(), 2u) << "nothing more of the orphan was issued";
  const ReadQueueCounters counters = queue_->counters();
  EXPECT_EQ(counters.orphaned_count, 1u);
  EXPECT_EQ(test::total_bytes(counters), 2 * kPiece) << "the drive delivered it, wanted or not";
}

TEST_F(ReadQueueOrder, AnOrphanThatEndedMayBeCancelledAgain) {
  make_queue(1);
  const ReadId orphan = submit(0, ReadPriority::kDemand);
  EXPECT_FALSE(queue_->cancel(orphan));
  queue_->drain();
  EXPECT_TRUE(queue_->cancel(orphan));
  EXPECT_DEATH(queue_->has_ended(orphan), "read.id == id") << "it is forgotten";
}

TEST_F(ReadQueueOrder, CancellingAnEndedReadForgetsIt) {
  script_.arrivals_allowed = BackendScript::kAll;
  make_queue(1);
  const ReadId id = submit(0, ReadPriority::kDemand);
  queue_->drain();
  EXPECT_TRUE(queue_->cancel(id));
  EXPECT_DEATH(static_cast<void>(queue_->take(id)), "read.id == id");
}

TEST_F(ReadQueueOrder, IdsAreNeverUsedAgain) {
  script_.arrivals_allowed = BackendScript::kAll;
  make_queue(1);
  const ReadId first = submit(0, ReadPriority::kDemand);
  ASSERT_TRUE(queue_->wait(first));
  const ReadId second = submit(0, ReadPriority::kDemand);
  EXPECT_NE(first, second);
  EXPECT_DEATH(queue_->has_ended(first), "read.id == id");
}

TEST_F(ReadQueueOrder, MoreReadsThanItsTableHoldsAreABug) {
  make_queue(1);
  for (size_t i = 0; i < ReadQueue::kReadsMax; ++i) submit(0, ReadPriority::kDemand, 512);
  EXPECT_DEATH(submit(0, ReadPriority::kDemand, 512), "unused_.empty");
  queue_->drain();
}

TEST_F(ReadQueueOrder, PartsThatAreNotAlignedAreABug) {
  make_queue(1);
  ReadPart odd = part(0);
  odd.offset = 100;
  EXPECT_DEATH(queue_->submit({&odd, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk), "offset");
  odd = part(0);
  odd.out = odd.out.subspan(1).first(512);
  odd.needed_bytes = 512;
  EXPECT_DEATH(queue_->submit({&odd, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk), "block_bytes");
  odd = part(0);
  odd.needed_bytes = odd.out.size() + 1;
  EXPECT_DEATH(queue_->submit({&odd, 1}, ReadPriority::kDemand, ReadPurpose::kTrunk), "needed_bytes");
  EXPECT_DEATH(queue_->submit({}, ReadPriority::kDemand, ReadPurpose::kTrunk), "empty");
}

TEST_F(ReadQueueOrder, TheDestructorWaitsForWhatIsHeldBackAndIssuesNothing) {
  for (size_t depth = 1; depth < 4; ++depth) {
    script_ = {.arrivals_allowed = 0, .short_every = 2};
    make_queue(depth, kPiece);
    for (size_t i = 0; i < 4; ++i) submit(i, ReadPriority::kDemand);
    ASSERT_EQ(script_.in_flight, depth);
    queue_.reset();
    EXPECT_EQ(script_.destroyed_with, 0u);
    EXPECT_EQ(script_.issued.size(), depth);
  }
}

TEST_F(ReadQueueOrder, CountsSpeculationThatNobodyWanted) {
  script_.arrivals_allowed = BackendScript::kAll;
  make_queue(2);
  const ReadId wanted = submit(0, ReadPriority::kSpeculative);
  const ReadId unwanted = submit(1, ReadPriority::kSpeculative);
  queue_->drain();
  queue_->promote(wanted, ReadPriority::kDemand);
  ASSERT_TRUE(queue_->take(wanted));
  EXPECT_TRUE(queue_->cancel(unwanted));
  const ReadQueueCounters counters = queue_->counters();
  EXPECT_EQ(counters.bytes_speculative, 2 * kMegabyte);
  EXPECT_EQ(counters.bytes_speculative_wasted, kMegabyte);
}

TEST_F(ReadQueueOrder, CountsOrphanedAndFailedSpeculationAsWasted) {
  make_queue(1, kPiece);
  EXPECT_FALSE(queue_->cancel(submit(0, ReadPriority::kSpeculative)));
  queue_->drain();
  EXPECT_EQ(queue_->counters().bytes_speculative_wasted, kPiece);
  script_.fail_at = 3;
  const ReadId failing = submit(1, ReadPriority::kSpeculative);
  queue_->drain();
  EXPECT_EQ(queue_->counters().bytes_speculative_wasted, 3 * kPiece);
  EXPECT_EQ(queue_->take(failing).error().code, Code::kIo);
  EXPECT_EQ(queue_->counters().bytes_speculative, 3 * kPiece);
  EXPECT_EQ(queue_->counters().bytes_speculative_wasted, 3 * kPiece);
}

TEST_F(ReadQueueOrder, CountsBytesByPurpose) {
  make_queue(2);
  const ReadPart parts[] = {part(0), part(1), part(2)};
  queue_->submit({parts, 1}, ReadPriority::kTrunk, ReadPurpose::kTrunk);
  queue_->submit({parts, 2}, ReadPriority::kDemand, ReadPurpose::kExperts);
  queue_->submit({parts, 3}, ReadPriority::kDemand, ReadPurpose::kHead);
  queue_->drain();
  const std::array<uint64_t, kReadPurposeCount> expected = {kMegabyte, 2 * kMegabyte, 3 * kMegabyte};
  EXPECT_EQ(queue_->counters().bytes_read, expected);
}

TEST_F(ReadQueueOrder, EveryFailingTransferFailsItsReadAndNoOther) {
  for (uint64_t fail_at = 0; fail_at < 9; ++fail_at) {
    script_ = {.arrivals_allowed = 0, .fail_at = fail_at};
    make_queue(2, 512 * 1024);
    std::vector<ReadId> ids;
    for (size_t i = 0; i < 5; ++i) ids.push_back(submit(i, ReadPriority::kDemand));
    queue_->drain();
    size_t failures = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Result<ReadResult> result = queue_->take(ids[i]);
      if (result) {
        EXPECT_TRUE(holds(part(i), contents_)) << fail_at << " " << i;
        continue;
      }
      ++failures;
      EXPECT_EQ(result.error().code, Code::kIo);
      EXPECT_EQ(result.error().message.find("read f @"), 0u) << result.error().message;
    }
    EXPECT_EQ(failures, 1u) << fail_at;
  }
}

TEST_F(ReadQueueOrder, SurvivesADriveThatFailsAndFallsShortAgainAndAgain) {
  for (const uint64_t short_every : {1u, 2u, 3u}) {
    script_ = {.last_first = true, .fail_every = 7, .short_every = short_every};
    make_queue(3, kPiece);
    size_t successes = 0;
    for (size_t i = 0; i < 200; ++i) {
      const size_t megabyte = i % 15;
      std::ranges::fill(part(megabyte, 3 * 512).out, kUntouched);
      const Result<ReadResult> result = queue_->wait(submit(megabyte, ReadPriority::kDemand, 3 * 512));
      if (!result) continue;
      ++successes;
      ASSERT_TRUE(holds(part(megabyte, 3 * 512), contents_)) << i;
    }
    EXPECT_EQ(successes > 0, short_every > 1) << "a drive that always stops inside a block is broken";
  }
}

}  // namespace
}  // namespace headrace
