#include "weights/trunk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ensure.h"
#include "io/alignment.h"
#include "weights/elements.h"
#include "weights/extent.h"
#include "weights/safetensors.h"

namespace headrace {
namespace {

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

}  // namespace

struct Trunk::State {
  /// Where the rows of a matrix are: in memory, or in the file only.
  enum class Home : uint8_t { kMemory, kFile };

  struct StoredMatrix {
    std::string name;  ///< For messages of `load`, then dropped.
    TensorInfo info;
    Home home = Home::kMemory;
    WeightView view;  ///< `data` is null until `load`, and always for a row table.
    size_t row_block = 0;
    size_t memory_offset = 0;
  };

  State(Checkpoint& from, Budget& memory_budget, size_t bytes_max)
      : checkpoint(from), budget(memory_budget), row_block_bytes_max(bytes_max) {
    for (size_t file = 0; file < from.file_count(); ++file) {
      largest_block = std::max(largest_block, from.file(file).block_bytes());
    }
  }

  Result<TrunkMatrix> add(std::string_view name, size_t rows, size_t cols, Home home);
  Result<std::vector<float>> read_vector(std::string_view name, const TensorInfo& info, size_t count);
  Result<TensorInfo> claim_vector(std::string_view name);
  Result<ReadExtent> read(size_t file_index, ByteRange range, std::span<std::byte> memory);
  void place(StoredMatrix& matrix);
  const StoredMatrix& stored(const TrunkMatrix& matrix, Home home) const;

  Checkpoint& checkpoint;
  Budget& budget;
  const size_t row_block_bytes_max;
  size_t largest_block = 1;

  std::vector<StoredMatrix> matrices;
  size_t resident_end = 0;  ///< Of the resident matrices placed so far.
  BlockMemory resident;
  BlockMemory row_memory;  ///< For one row of any row table, widened.
  bool loaded = false;
  uint64_t bytes_read = 0;
  uint64_t row_bytes_read = 0;  ///< Of `bytes_read`: by `read_row`.
  std::chrono::steady_clock::duration waited{};
};

Trunk::Trunk(Checkpoint& checkpoint, Budget& budget, size_t row_block_bytes_max)
    : state_(std::make_unique<State>(checkpoint, budget, row_block_bytes_max)) {}
Trunk::~Trunk() = default;
Trunk::Trunk(Trunk&&) noexcept = default;

Result<TrunkMatrix> Trunk::State::add(std::string_view name, size_t rows, size_t cols, Home home) {
  ENSURE(!loaded && rows > 0 && cols > 0);
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
  matrix.row_block = row_block_bytes_max == 0 ? rows : std::max<size_t>(1, row_block_bytes_max / matrix.view.row_bytes);
  if (home == Home::kMemory) place(matrix);
  matrices.push_back(std::move(matrix));
  return TrunkMatrix{static_cast<uint32_t>(matrices.size() - 1), rows, cols};
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
  const size_t block_bytes = checkpoint.file(info.file_index).block_bytes();
  const BlockMemory memory =
      TRY(BlockMemory::allocate(budget, extent_memory_bytes(range, block_bytes), block_bytes, "small tensor"));
  const ReadExtent extent = TRY(named(name, read(info.file_index, range, memory.bytes())));
  const Format format = *plain_format(info.dtype);
  TRY(named(name, check_finite(format, extent.data, count)));
  std::vector<float> values(count);
  decode_elements(format, extent.data, values);
  return values;
}

Result<ReadExtent> Trunk::State::read(size_t file_index, ByteRange range, std::span<std::byte> memory) {
  const auto start = std::chrono::steady_clock::now();
  Result<ReadExtent> extent = read_extent(checkpoint.file(file_index), range, memory);
  if (loaded) waited += std::chrono::steady_clock::now() - start;
  if (extent) bytes_read += extent.value().bytes_read;
  return extent;
}

const Trunk::State::StoredMatrix& Trunk::State::stored(const TrunkMatrix& matrix, Home home) const {
  ENSURE(matrix.index < matrices.size() && matrices[matrix.index].home == home);
  return matrices[matrix.index];
}

/// Gives a resident matrix its place behind the one before.
void Trunk::State::place(StoredMatrix& matrix) {
  const size_t block_bytes = checkpoint.file(matrix.info.file_index).block_bytes();
  matrix.memory_offset = static_cast<size_t>(align_up(resident_end, block_bytes));
  resident_end = matrix.memory_offset + extent_memory_bytes(matrix.info.range, block_bytes);
}

Result<TrunkMatrix> Trunk::add_matrix(std::string_view name, size_t rows, size_t cols) {
  return state_->add(name, rows, cols, State::Home::kMemory);
}

Result<TrunkMatrix> Trunk::add_row_table(std::string_view name, size_t rows, size_t cols) {
  const TrunkMatrix table = TRY(state_->add(name, rows, cols, State::Home::kFile));
  const State::StoredMatrix& stored = state_->matrices.back();
  const size_t block_bytes = state_->checkpoint.file(stored.info.file_index).block_bytes();
  // A row may begin and end inside a block. Aligned to the largest block, for tables in several files.
  const size_t wanted_bytes = stored.view.row_bytes + 2 * block_bytes;
  if (wanted_bytes > state_->row_memory.bytes().size()) {
    state_->row_memory = {};
    state_->row_memory =
        TRY(BlockMemory::allocate(state_->budget, wanted_bytes, state_->largest_block, "row of a table"));
  }
  return table;
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

Status Trunk::load() {
  State& state = *state_;
  ENSURE(!state.loaded);
  state.resident =
      TRY(BlockMemory::allocate(state.budget, state.resident_end, state.largest_block, "resident weights"));
  for (State::StoredMatrix& matrix : state.matrices) {
    if (matrix.home != State::Home::kMemory) continue;
    const std::span<std::byte> memory = state.resident.bytes().subspan(matrix.memory_offset);
    const ReadExtent extent = TRY(named(matrix.name, state.read(matrix.info.file_index, matrix.info.range, memory)));
    matrix.view.data = extent.data;
    TRY(named(matrix.name, check_finite(matrix.view.format, extent.data, matrix.view.rows * matrix.view.cols)));
  }
  for (State::StoredMatrix& matrix : state.matrices) matrix.name = std::string();
  state.loaded = true;
  return {};
}

Result<RowBlock> Trunk::acquire(const TrunkMatrix& matrix, size_t first_row) {
  const State::StoredMatrix& stored = state_->stored(matrix, State::Home::kMemory);
  ENSURE(state_->loaded && first_row < stored.view.rows && first_row % stored.row_block == 0);
  const size_t count = std::min(stored.row_block, stored.view.rows - first_row);
  return RowBlock(first_row, stored.view.row_range(first_row, count));
}

Result<RowBlock> Trunk::acquire_whole(const TrunkMatrix& matrix) {
  ENSURE(state_->loaded);
  return RowBlock(0, state_->stored(matrix, State::Home::kMemory).view);
}

Status Trunk::read_row(const TrunkMatrix& table, size_t row, std::span<float> out) {
  const State::StoredMatrix& stored = state_->stored(table, State::Home::kFile);
  const WeightView& view = stored.view;
  ENSURE(row < view.rows && out.size() == view.cols);
  const ByteRange range{stored.info.range.offset + row * view.row_bytes, view.row_bytes};
  const ReadExtent extent = TRY(state_->read(stored.info.file_index, range, state_->row_memory.bytes()));
  state_->row_bytes_read += extent.bytes_read;
  decode_elements(view.format, extent.data, out);
  Status status = check_finite(view.format, extent.data, view.cols);
  if (status) return {};
  const std::string& path = state_->checkpoint.file(stored.info.file_index).path();
  return with_context(status.take_error(), "%s: row %zu of a table", path.c_str(), row);
}

uint64_t Trunk::matrix_bytes_read() const {
  return state_->bytes_read - state_->row_bytes_read;
}
uint64_t Trunk::row_bytes_read() const {
  return state_->row_bytes_read;
}
size_t Trunk::resident_bytes() const {
  return BlockMemory::budgeted_bytes(state_->resident_end, state_->largest_block);
}
double Trunk::wait_s() const {
  return std::chrono::duration<double>(state_->waited).count();
}

}  // namespace headrace
