#include "weights/trunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "base/ensure.h"
#include "base/memory_lock.h"
#include "io/alignment.h"
#include "weights/elements.h"
#include "weights/extent.h"
#include "weights/safetensors.h"
#include "weights/trunk_ring.h"

namespace headrace {
namespace {

/// Rows of a table on their way at once.
constexpr size_t kTableRowsTogether = 16;

/// Rows of a table that stand for all when it is asked what a row reads: they begin at every place in a block.
constexpr uint64_t kTableRowsMeasured = 4096;

/// Rows of a block come in multiples of this where they can: whole register tiles.
constexpr size_t kBlockRowsMultiple = 16;

/// [rows, cols], whatever dimensions of 1 stand around it.
bool is_matrix_shape(const Shape& shape, size_t rows, size_t cols) {
  const auto strip = [](std::span<const uint64_t> dims) {
    while (!dims.empty() && dims.front() == 1) dims = dims.subspan(1);
    while (!dims.empty() && dims.back() == 1) dims = dims.first(dims.size() - 1);
    return dims;
  };
  const uint64_t wanted[] = {rows, cols};
  return std::ranges::equal(strip({shape.dims.data(), shape.rank}), strip(wanted));
}

/// The same result, its error with the name of the tensor in front.
template <class R>
R named(std::string_view tensor, R result) {
  if (result) return result;
  return with_context(result.take_error(), "tensor %s", printable(tensor).c_str());
}

/// 0 .. count-1 so that every beginning of the list is spread evenly: by the bits of the number, mirrored.
std::vector<size_t> spread_order(size_t count) {
  const int bits = static_cast<int>(std::bit_width(count > 0 ? count - 1 : 0));
  std::vector<size_t> order;
  for (size_t i = 0; i < size_t{1} << bits; ++i) {
    size_t mirrored = 0;
    for (int bit = 0; bit < bits; ++bit) mirrored |= ((i >> bit) & 1) << (bits - 1 - bit);
    if (mirrored < count) order.push_back(mirrored);
  }
  return order;
}

}  // namespace

struct Trunk::State {
  enum class Home : uint8_t { kRows, kWhole, kTable };

  struct StoredMatrix {
    std::string name;
    TensorInfo info;
    Home home = Home::kRows;
    WeightView view{};         ///< `data` is null while it is not pinned.
    size_t memory_offset = 0;  ///< In the memory of its group.
  };

  struct Group {
    bool is_head = false;
    size_t first_matrix = 0;
    size_t end_matrix = 0;
    size_t memory_end = 0;  ///< Of the matrices placed so far.
    BlockMemory memory{};
    bool is_pinned = false;
    bool is_locked = true;
  };

  State(Checkpoint& from, Budget& memory_budget, ReadQueue& reads, size_t bytes_max)
      : checkpoint(from), budget(memory_budget), queue(reads), row_block_bytes_max(bytes_max), ring(reads) {
    for (size_t file = 0; file < from.file_count(); ++file) {
      largest_block = std::max(largest_block, from.file(file).block_bytes());
    }
  }

  Result<TrunkMatrix> add(std::string_view name, size_t rows, size_t cols, Home home);
  Result<TensorInfo> claim_vector(std::string_view name);
  Result<std::vector<float>> read_vector(std::string_view name, const TensorInfo& info, size_t count);
  ReadableFile& file_of(const StoredMatrix& matrix) const { return checkpoint.file(matrix.info.file_index); }
  void place(StoredMatrix& matrix);
  const StoredMatrix& stored(const TrunkMatrix& matrix) const {
    ENSURE(matrix.index < matrices.size());
    return matrices[matrix.index];
  }
  size_t block_bytes_max() const;
  size_t block_rows(const StoredMatrix& matrix) const;
  void begin_group(bool is_head);
  struct ReadKind {
    ReadPriority priority;
    ReadPurpose purpose;
  };
  struct StartedRead {
    ReadId id{};
    const std::byte* data = nullptr;  ///< Where the range begins, once it is read.
  };
  StartedRead start_read(ReadableFile& file, ByteRange range, std::span<std::byte> memory, ReadKind kind);
  Status read_table_rows(const StoredMatrix& table, std::span<const uint32_t> rows, MatrixView<float> out);
  Status pin_group(Group& group);
  Status read_group(Group& group);
  Status stream_rest();
  size_t ring_bytes() const;
  uint64_t streamed_bytes(const Group& group) const;

  Checkpoint& checkpoint;
  Budget& budget;
  ReadQueue& queue;
  const size_t row_block_bytes_max;
  size_t largest_block = 1;

  std::vector<StoredMatrix> matrices;
  size_t largest_matrix_bytes = 0;  ///< Of those that are no tables.
  size_t widest_row_bytes = 0;      ///< Of the same.
  std::vector<Group> groups;
  TrunkRing ring;
  BlockMemory table_memory;  ///< For kTableRowsTogether rows of any row table, widened.
  bool is_ready = false;     ///< Nothing more is added.
};

Trunk::Trunk(Checkpoint& checkpoint, Budget& budget, ReadQueue& queue, size_t row_block_bytes_max)
    : state_(std::make_unique<State>(checkpoint, budget, queue, row_block_bytes_max)) {}
Trunk::~Trunk() = default;
Trunk::Trunk(Trunk&&) noexcept = default;

void Trunk::begin_layer() {
  state_->begin_group(false);
}
void Trunk::begin_head() {
  state_->begin_group(true);
}

void Trunk::State::begin_group(bool is_head) {
  ENSURE(!is_ready && (groups.empty() || !groups.back().is_head));
  groups.push_back({.is_head = is_head, .first_matrix = matrices.size(), .end_matrix = matrices.size()});
}

Result<TrunkMatrix> Trunk::State::add(std::string_view name, size_t rows, size_t cols, Home home) {
  ENSURE(!is_ready && rows > 0 && cols > 0);
  const TensorInfo info = TRY(checkpoint.claim(name));
  StoredMatrix matrix{.name = std::string(name), .info = info, .home = home};
  const std::string shown = printable(name);
  const std::optional<Format> format = plain_format(matrix.info.dtype);
  if (!format) {
    return error(Code::kFormat, "tensor %s: type %s, expected BF16, F16 or F32", shown.c_str(),
                 dtype_name(matrix.info.dtype));
  }
  if (!is_matrix_shape(matrix.info.shape, rows, cols)) {
    return error(Code::kFormat, "tensor %s: shape %s, expected [%zu, %zu]", shown.c_str(),
                 matrix.info.shape.text().c_str(), rows, cols);
  }
  matrix.view = {.format = *format, .rows = rows, .cols = cols, .row_bytes = cols * dtype_bytes(matrix.info.dtype)};
  if (home != Home::kTable) place(matrix);
  matrices.push_back(std::move(matrix));
  return TrunkMatrix{static_cast<uint32_t>(matrices.size() - 1), rows, cols};
}

/// Gives a matrix its place in the memory of its group, behind the one before.
void Trunk::State::place(StoredMatrix& matrix) {
  if (groups.empty()) begin_group(false);
  Group& group = groups.back();
  const size_t block_bytes = file_of(matrix).block_bytes();
  const size_t bytes = extent_memory_bytes(matrix.info.range, block_bytes);
  matrix.memory_offset = static_cast<size_t>(align_up(group.memory_end, block_bytes));
  group.memory_end = matrix.memory_offset + bytes;
  group.end_matrix = matrices.size() + 1;
  largest_matrix_bytes = std::max(largest_matrix_bytes, matrix.view.rows * matrix.view.row_bytes);
  widest_row_bytes = std::max(widest_row_bytes, matrix.view.row_bytes);
}

Result<TrunkMatrix> Trunk::add_matrix(std::string_view name, size_t rows, size_t cols) {
  return state_->add(name, rows, cols, State::Home::kRows);
}

Result<TrunkMatrix> Trunk::add_whole_matrix(std::string_view name, size_t rows, size_t cols) {
  return state_->add(name, rows, cols, State::Home::kWhole);
}

Result<TrunkMatrix> Trunk::add_row_table(std::string_view name, size_t rows, size_t cols) {
  State& state = *state_;
  const TrunkMatrix table = TRY(state.add(name, rows, cols, State::Home::kTable));
  const size_t row_bytes = TrunkRing::block_memory_bytes(state.matrices.back().view.row_bytes, state.largest_block);
  if (kTableRowsTogether * row_bytes > state.table_memory.bytes().size()) {
    state.table_memory = {};
    state.table_memory = TRY(
        BlockMemory::allocate(state.budget, kTableRowsTogether * row_bytes, state.largest_block, "rows of a table"));
  }
  return table;
}

Result<TensorInfo> Trunk::State::claim_vector(std::string_view name) {
  const TensorInfo info = TRY(checkpoint.claim(name));
  if (info.range.size == 0) return error(Code::kFormat, "tensor %s is empty", printable(name).c_str());
  if (plain_format(info.dtype)) return info;
  return error(Code::kFormat, "tensor %s: type %s, expected BF16, F16 or F32", printable(name).c_str(),
               dtype_name(info.dtype));
}

Result<std::vector<float>> Trunk::State::read_vector(std::string_view name, const TensorInfo& info, size_t count) {
  const ByteRange range{info.range.offset, count * dtype_bytes(info.dtype)};
  ReadableFile& file = checkpoint.file(info.file_index);
  const size_t block_bytes = file.block_bytes();
  const BlockMemory memory =
      TRY(BlockMemory::allocate(budget, extent_memory_bytes(range, block_bytes), block_bytes, "small tensor"));
  const auto [id, data] = start_read(file, range, memory.bytes(), {ReadPriority::kDemand, ReadPurpose::kTrunk});
  TRY(named(name, queue.wait(id)));
  const Format format = *plain_format(info.dtype);
  TRY(named(name, check_finite(format, data, count)));
  std::vector<float> values(count);
  decode_elements(format, data, values);
  return values;
}

Result<std::vector<float>> Trunk::read_vector(std::string_view name, size_t count) {
  const TensorInfo info = TRY(state_->claim_vector(name));
  if (info.shape.element_count() != count) {
    return error(Code::kFormat, "tensor %s: shape %s, expected %zu elements", printable(name).c_str(),
                 info.shape.text().c_str(), count);
  }
  return state_->read_vector(name, info, count);
}

Result<std::vector<float>> Trunk::read_vector_prefix(std::string_view name, size_t count) {
  const TensorInfo info = TRY(state_->claim_vector(name));
  if (info.shape.element_count() < count) {
    return error(Code::kFormat, "tensor %s: shape %s, expected at least %zu elements", printable(name).c_str(),
                 info.shape.text().c_str(), count);
  }
  return state_->read_vector(name, info, count);
}

/// The same whatever is pinned, so that the ring does not change with the budget.
size_t Trunk::State::block_bytes_max() const {
  size_t bytes = std::clamp(largest_matrix_bytes / 8, kBlockBytesMin, kBlockBytesMax);
  if (row_block_bytes_max > 0) bytes = std::min(bytes, row_block_bytes_max);
  return std::max(bytes, widest_row_bytes);  // At least one row.
}

size_t Trunk::State::block_rows(const StoredMatrix& matrix) const {
  if (matrix.home == Home::kWhole) return matrix.view.rows;
  const size_t rows = block_bytes_max() / matrix.view.row_bytes;
  if (rows >= matrix.view.rows) return matrix.view.rows;
  return rows > kBlockRowsMultiple ? rows / kBlockRowsMultiple * kBlockRowsMultiple : rows;
}

size_t Trunk::State::ring_bytes() const {
  const size_t block_bytes = TrunkRing::block_memory_bytes(block_bytes_max(), largest_block);
  size_t largest = block_bytes;
  for (const StoredMatrix& matrix : matrices) {
    if (matrix.home != Home::kWhole) continue;
    const size_t bytes = matrix.view.rows * matrix.view.row_bytes;
    largest = std::max(largest, TrunkRing::block_memory_bytes(bytes, largest_block));
  }
  return (kRingBlocksMin - 1) * block_bytes + largest;
}

size_t Trunk::ring_memory_bytes() const {
  return BlockMemory::budgeted_bytes(state_->ring_bytes(), state_->largest_block);
}

/// Row blocks that share a block of the file both read it.
uint64_t Trunk::State::streamed_bytes(const Group& group) const {
  uint64_t bytes = 0;
  for (size_t i = group.first_matrix; i < group.end_matrix; ++i) {
    const StoredMatrix& matrix = matrices[i];
    if (matrix.home == Home::kTable) continue;
    const size_t block_bytes = file_of(matrix).block_bytes();
    const size_t rows_together = block_rows(matrix);
    for (size_t row = 0; row < matrix.view.rows; row += rows_together) {
      const size_t rows = std::min(rows_together, matrix.view.rows - row);
      const uint64_t offset = matrix.info.range.offset + row * matrix.view.row_bytes;
      bytes += widen({offset, rows * matrix.view.row_bytes}, block_bytes).size;
    }
  }
  return bytes;
}

std::vector<TrunkGroup> Trunk::groups_in_pin_order() const {
  std::vector<TrunkGroup> groups;
  for (const size_t place : spread_order(state_->groups.size())) {
    const State::Group& group = state_->groups[place];
    groups.push_back({group.is_head, BlockMemory::budgeted_bytes(group.memory_end, state_->largest_block),
                      state_->streamed_bytes(group)});
  }
  return groups;
}

Status Trunk::pin(size_t count) {
  State& state = *state_;
  ENSURE(count <= state.groups.size());
  state.is_ready = true;
  const std::vector<size_t> order = spread_order(state.groups.size());
  state.ring.set_matrices({});
  for (size_t i = count; i < order.size(); ++i) {
    State::Group& group = state.groups[order[i]];
    for (size_t matrix = group.first_matrix; matrix < group.end_matrix; ++matrix) {
      state.matrices[matrix].view.data = nullptr;
    }
    group.is_pinned = false;
    group.memory = {};
  }
  if (count == order.size()) state.ring.free();
  for (size_t i = 0; i < count; ++i) {
    State::Group& group = state.groups[order[i]];
    if (!group.is_pinned) TRY(state.pin_group(group));
  }
  return state.stream_rest();
}

Status Trunk::State::pin_group(Group& group) {
  if (group.memory_end > 0) {
    group.memory = TRY(BlockMemory::allocate(budget, group.memory_end, largest_block, "pinned weights"));
    group.is_locked = lock_in_memory(group.memory.bytes());
    Status status = read_group(group);
    if (!status) {
      group.memory = {};
      return status;
    }
  }
  group.is_pinned = true;
  return {};
}

Trunk::State::StartedRead Trunk::State::start_read(ReadableFile& file, ByteRange range, std::span<std::byte> memory,
                                                   ReadKind kind) {
  const auto [part, data] = widened_read(file, range, memory);
  return {queue.submit({&part, 1}, kind.priority, kind.purpose), data};
}

Status Trunk::State::read_group(Group& group) {
  const ReadKind kind{ReadPriority::kTrunk, group.is_head ? ReadPurpose::kHead : ReadPurpose::kTrunk};
  std::vector<StartedRead> reads;
  for (size_t i = group.first_matrix; i < group.end_matrix; ++i) {
    if (matrices[i].home == Home::kTable) continue;
    const std::span<std::byte> memory = group.memory.bytes().subspan(matrices[i].memory_offset);
    reads.push_back(start_read(file_of(matrices[i]), matrices[i].info.range, memory, kind));
  }
  Status status;
  auto read = reads.begin();
  for (size_t i = group.first_matrix; i < group.end_matrix; ++i) {
    StoredMatrix& matrix = matrices[i];
    if (matrix.home == Home::kTable) continue;
    const auto [id, data] = *read++;
    // All are waited for: after an error nothing may be on its way to memory that is freed.
    auto result = queue.wait(id);
    if (!status) continue;
    if (!result) {
      status = named(matrix.name, Status(result.take_error()));
      continue;
    }
    status = named(matrix.name, check_finite(matrix.view.format, data, matrix.view.rows * matrix.view.cols));
    matrix.view.data = data;
  }
  if (status) return status;
  for (size_t i = group.first_matrix; i < group.end_matrix; ++i) matrices[i].view.data = nullptr;
  return status;
}

/// Lets what is not pinned pass through the ring.
Status Trunk::State::stream_rest() {
  std::vector<StreamedMatrix> streamed;
  for (const Group& group : groups) {
    for (size_t i = group.first_matrix; i < group.end_matrix && !group.is_pinned; ++i) {
      const StoredMatrix& matrix = matrices[i];
      if (matrix.home == Home::kTable) continue;
      streamed.push_back({static_cast<uint32_t>(i), matrix.name, &file_of(matrix), matrix.info.range.offset,
                          matrix.view, block_rows(matrix), group.is_head});
    }
  }
  if (streamed.empty()) return {};
  if (ring.memory_bytes() == 0) TRY(ring.allocate(budget, ring_bytes(), largest_block));
  ring.set_matrices(std::move(streamed));
  return {};
}

size_t Trunk::pinned_count() const {
  return static_cast<size_t>(std::ranges::count(state_->groups, true, &State::Group::is_pinned));
}
size_t Trunk::pinned_layer_count() const {
  return static_cast<size_t>(std::ranges::count_if(
      state_->groups, [](const State::Group& group) { return group.is_pinned && !group.is_head; }));
}
size_t Trunk::layer_count() const {
  return static_cast<size_t>(std::ranges::count(state_->groups, false, &State::Group::is_head));
}
bool Trunk::is_locked() const {
  return std::ranges::all_of(state_->groups,
                             [](const State::Group& group) { return !group.is_pinned || group.is_locked; });
}

void Trunk::begin_pass(bool with_head) {
  ENSURE(state_->is_ready);
  state_->ring.begin_pass(with_head);
}

Result<RowBlock> Trunk::acquire(const TrunkMatrix& matrix, size_t first_row) {
  State& state = *state_;
  const State::StoredMatrix& stored = state.stored(matrix);
  ENSURE(stored.home != State::Home::kTable && first_row < stored.view.rows);
  if (!stored.view.data) return state.ring.acquire(matrix.index, first_row);
  const bool is_cut = state.row_block_bytes_max > 0;
  const size_t rows = is_cut ? state.block_rows(stored) : stored.view.rows;
  return RowBlock(first_row, stored.view.row_range(first_row, std::min(rows, stored.view.rows - first_row)));
}

Result<RowBlock> Trunk::acquire_whole(const TrunkMatrix& matrix) {
  const State::StoredMatrix& stored = state_->stored(matrix);
  ENSURE(stored.home == State::Home::kWhole);
  RowBlock block = TRY(acquire(matrix, 0));
  if (!stored.view.data) {
    TRY(named(stored.name, check_finite(stored.view.format, block.weights().data, matrix.rows * matrix.cols)));
  }
  return block;
}

void Trunk::pump() {
  state_->queue.pump();
}

Status Trunk::read_rows(const TrunkMatrix& table, std::span<const uint32_t> rows, MatrixView<float> out) {
  ENSURE(rows.size() == out.rows() && table.cols == out.cols());
  Status status;
  for (size_t first = 0; status && first < rows.size(); first += kTableRowsTogether) {
    const size_t count = std::min(kTableRowsTogether, rows.size() - first);
    status = state_->read_table_rows(state_->stored(table), rows.subspan(first, count), out.row_range(first, count));
  }
  return status;
}

/// Up to kTableRowsTogether rows, all on their way at once.
Status Trunk::State::read_table_rows(const StoredMatrix& table, std::span<const uint32_t> rows, MatrixView<float> out) {
  const WeightView& view = table.view;
  const size_t row_memory = TrunkRing::block_memory_bytes(view.row_bytes, largest_block);
  std::array<StartedRead, kTableRowsTogether> reads{};
  for (size_t i = 0; i < rows.size(); ++i) {
    ENSURE(rows[i] < view.rows);
    const ByteRange range{table.info.range.offset + rows[i] * view.row_bytes, view.row_bytes};
    const std::span<std::byte> memory = table_memory.bytes().subspan(i * row_memory, row_memory);
    reads[i] = start_read(file_of(table), range, memory, {ReadPriority::kDemand, ReadPurpose::kHead});
  }
  Status status;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [id, data] = reads[i];
    auto result = queue.wait(id);  // All of them: the memory is used again.
    if (!status) continue;
    if (result)
      status = check_finite(view.format, data, view.cols);
    else
      status = result.take_error();
    if (status)
      decode_elements(view.format, data, out.row(i));
    else
      status = with_context(status.take_error(), "tensor %s: row %u", printable(table.name).c_str(), rows[i]);
  }
  return status;
}

uint64_t Trunk::row_read_bytes(const TrunkMatrix& table) const {
  const State::StoredMatrix& stored = state_->stored(table);
  const uint64_t rows = std::min<uint64_t>(stored.view.rows, kTableRowsMeasured);
  uint64_t bytes = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t offset = stored.info.range.offset + row * stored.view.row_bytes;
    bytes += widen({offset, stored.view.row_bytes}, state_->file_of(stored).block_bytes()).size;
  }
  return bytes / rows;
}

std::string Trunk::matrix_name(const TrunkMatrix& matrix) const {
  return printable(state_->stored(matrix).name);
}
uint64_t Trunk::blocks_streamed() const {
  return state_->ring.blocks_passed();
}

}  // namespace headrace
