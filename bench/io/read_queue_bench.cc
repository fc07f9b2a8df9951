#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "io/file.h"
#include "io/read_queue.h"

// Random direct reads of records from a file of 4 GiB in $TMPDIR (or /tmp), which is written when the first of these is
// run: slow, and no part of a quick run. Compare rates of one run with each other only; drives are seldom quiet.

namespace headrace::bench {
namespace {

constexpr size_t kFileBytes = size_t{4} << 30;
constexpr size_t kBatchBytes = size_t{128} << 20;  ///< That an iteration reads.
constexpr size_t kReadsAtOnce = 6;                 ///< That the owner has submitted: experts of one layer.
constexpr size_t kBlockBytes = 4096;

/// A file of noise, removed at the end of the program.
class NoiseFile {
 public:
  NoiseFile() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent && *parent ? parent : "/tmp") + "/headrace-bench-XXXXXX";
    const int fd = mkstemp(path_.data());
    std::ofstream out(path_, std::ios::binary);
    std::mt19937_64 random(1);
    std::vector<uint64_t> words(size_t{1} << 17);
    for (size_t written = 0; written < kFileBytes; written += words.size() * sizeof(uint64_t)) {
      std::ranges::generate(words, std::ref(random));
      out.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 8));
    }
    out.close();
    ::fsync(fd);  // Or the drive would still be writing while it is measured.
    ::close(fd);
  }
  ~NoiseFile() { std::remove(path_.c_str()); }
  NoiseFile(const NoiseFile&) = delete;
  NoiseFile& operator=(const NoiseFile&) = delete;

  std::unique_ptr<ReadableFile> open() const { return open_file(path_, ReadMode::kDirect).take_value(); }

 private:
  std::string path_;
};

/// Records of one size at random places, and memory for those that are on their way.
class Records {
 public:
  explicit Records(size_t record_bytes) : record_bytes_(record_bytes) {
    static const NoiseFile file;
    file_ = file.open();
    memory_ = AlignedMemory::allocate(budget_, kReadsAtOnce * record_bytes, "records").take_value();
    std::ranges::fill(memory_.bytes(), std::byte{1});  // Or the first reads would wait for pages.
  }

  size_t count() const { return std::max<size_t>(1, kBatchBytes / record_bytes_); }
  bool are_direct() const { return file_->is_direct(); }
  std::span<std::byte> memory() const { return memory_.bytes(); }
  /// The next record, to the memory of this slot.
  ReadPart next(size_t slot) {
    const uint64_t place = random_() % ((kFileBytes - record_bytes_) / kBlockBytes);
    return {file_.get(), place * kBlockBytes, memory_.bytes().subspan(slot * record_bytes_, record_bytes_),
            record_bytes_};
  }

 private:
  const size_t record_bytes_;
  Budget budget_{SIZE_MAX};
  std::unique_ptr<ReadableFile> file_;
  AlignedMemory memory_;
  std::mt19937_64 random_{2};
};

/// Says what keeps a benchmark from being one.
bool check(benchmark::State& state, const Records& records, const Status& status) {
  if (!records.are_direct()) state.SkipWithError("the file system refuses direct reads");
  if (!status) state.SkipWithError(status.error().message.c_str());
  return records.are_direct() && status;
}

void count_bytes(benchmark::State& state, size_t record_bytes, size_t count) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * record_bytes * count));
}

/// One `pread` after another.
void plain_reads(benchmark::State& state) {
  const auto record_bytes = static_cast<size_t>(state.range(0)) << 10;
  Records records(record_bytes);
  Status status;
  for (auto _ : state) {
    for (size_t i = 0; i < records.count() && status; ++i) {
      const ReadPart part = records.next(0);
      status = read_exactly(*part.file, part.offset, part.out);
    }
  }
  if (check(state, records, status)) count_bytes(state, record_bytes, records.count());
}

/// Reads a batch with `at_once` reads known to the queue, and takes them in the order in which they were submitted.
Status read_batch(ReadQueue& queue, Records& records, size_t at_once) {
  std::array<ReadId, kReadsAtOnce> ids{};
  for (size_t i = 0; i < records.count() + at_once; ++i) {
    const size_t slot = i % at_once;
    if (i >= at_once) TRY(queue.wait(ids[slot]));
    if (i >= records.count()) continue;
    const ReadPart part = records.next(slot);
    ids[slot] = queue.submit({&part, 1}, ReadPriority::kDemand, ReadPurpose::kExperts);
  }
  return {};
}

/// Arguments: KiB of a record, depth, KiB of a piece, reads at once.
void queued_reads(benchmark::State& state, ReadBackendKind kind) {
  const auto record_bytes = static_cast<size_t>(state.range(0)) << 10;
  const auto at_once = static_cast<size_t>(state.range(3));
  Records records(record_bytes);
  Budget budget(SIZE_MAX);
  const ReadQueueOptions options{.backend = kind,
                                 .depth = static_cast<size_t>(state.range(1)),
                                 .piece_bytes = static_cast<size_t>(state.range(2)) << 10};
  auto queue = ReadQueue::create(options, budget, Log());
  if (!queue) return state.SkipWithError(queue.error().message.c_str());
  queue.value()->register_memory(records.memory());
  Status status;
  for (auto _ : state) {
    if (status) status = read_batch(*queue.value(), records, std::min(at_once, records.count()));
  }
  queue.value()->drain();
  if (check(state, records, status)) count_bytes(state, record_bytes, records.count());
}

constexpr int64_t kRecordKib[] = {256, 4 * 1024, 17 * 1024, 32 * 1024};

void plain_arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("KiB")->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
  for (const int64_t kib : kRecordKib) benchmark->Arg(kib);
}

void queue_arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"KiB", "depth", "piece", "at_once"});
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
  for (const int64_t kib : kRecordKib) {
    for (const int64_t at_once : {int64_t{1}, static_cast<int64_t>(kReadsAtOnce)}) {
      benchmark->Args({kib, 0, 0, at_once});
    }
  }
}

/// What the defaults were chosen from.
void choice_arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"KiB", "depth", "piece", "at_once"});
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
  for (const int64_t at_once : {int64_t{1}, static_cast<int64_t>(kReadsAtOnce)}) {
    for (const int64_t depth : {1, 2, 4, 8}) {
      for (const int64_t piece_kib : {2048, 4096, 8192, 32768}) {
        benchmark->Args({17 * 1024, depth, piece_kib, at_once});
      }
    }
  }
}

BENCHMARK(plain_reads)->Apply(plain_arguments);
BENCHMARK_CAPTURE(queued_reads, io_uring, ReadBackendKind::kUring)->Apply(queue_arguments);
BENCHMARK_CAPTURE(queued_reads, threads, ReadBackendKind::kThreads)->Apply(queue_arguments);
BENCHMARK_CAPTURE(queued_reads, choice, ReadBackendKind::kUring)->Apply(choice_arguments);

}  // namespace
}  // namespace headrace::bench
