#include "weights/expert_model.h"

#include <algorithm>
#include <utility>

#include "base/ensure.h"
#include "support/value_generator.h"

namespace headrace::test {
namespace {

const char* const kMatrixNames[] = {"w1", "w3", "w2"};

}  // namespace

ExpertModel::ExpertModel(ExpertModelOptions given) : options(std::move(given)) {
  files = in_folder("m", make_files());
  const size_t other = options.other_block_bytes > 0 ? options.other_block_bytes : options.block_bytes;
  open("m", mixed_block_opener(files, {options.block_bytes, other}, &plan));
}

ExpertModel::ExpertModel(ExpertModelOptions given, const TempFolder& folder) : options(std::move(given)) {
  files = make_files();
  folder.write(files);
  open(folder.path(), faulty_opener(open_file, plan));
}

void ExpertModel::open(const std::string& folder, const FileOpener& opener) {
  Result<Checkpoint> opened = Checkpoint::open(folder, opener, options.read_mode, budget);
  ENSURE(opened);
  checkpoint = std::make_unique<Checkpoint>(opened.take_value());
  plan.reset_counts();
}

ExpertCatalog::Layout ExpertModel::layout() const {
  const Format format = options.mxfp4 ? Format::kMxfp4 : Format::kBf16;
  const size_t factor = options.row_factor;
  return {options.layers,
          options.experts,
          {{format, 40 * factor, 64}, {format, 40 * factor, 64}, {format, 64 * factor, 32}}};
}

ExpertCatalog::Namer ExpertModel::namer() const {
  return [mxfp4 = options.mxfp4](ExpertId id, size_t matrix) -> ExpertCatalog::TensorNames {
    const std::string name =
        "l" + std::to_string(id.layer) + ".e" + std::to_string(id.expert) + "." + kMatrixNames[matrix] + ".weight";
    if (!mxfp4) return {name, ""};
    return {name + "_packed", name + "_scale"};
  };
}

Result<ExpertCatalog> ExpertModel::catalog() const {
  return ExpertCatalog::build(*checkpoint, budget, layout(), namer());
}

std::vector<ExpertId> ExpertModel::ids() const {
  std::vector<ExpertId> ids;
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    for (uint32_t expert = 0; expert < options.experts; ++expert) ids.push_back({layer, expert});
  }
  return ids;
}

std::vector<std::string> ExpertModel::tensor_names(ExpertId id) const {
  std::vector<std::string> names;
  for (size_t matrix = 0; matrix < std::size(kMatrixNames); ++matrix) {
    const ExpertCatalog::TensorNames two = namer()(id, matrix);
    names.push_back(two.data);
    if (!two.scales.empty()) names.push_back(two.scales);
  }
  return names;
}

std::vector<WrittenTensor> ExpertModel::make_tensors() const {
  if (!options.tensors.empty()) return options.tensors;
  std::vector<WrittenTensor> tensors;
  const auto add = [&](const std::string& name, const std::string& type, uint64_t rows, uint64_t cols, ValueRule rule) {
    const auto replacement = options.replacements.find(name);
    tensors.push_back(
        replacement != options.replacements.end()
            ? replacement->second
            : WrittenTensor{name, type, {rows, cols}, test::tensor_bytes(name, type, rule, rows * cols, SIZE_MAX)});
  };
  for (const ExpertId id : ids()) {
    for (size_t matrix = 0; matrix < std::size(kMatrixNames); ++matrix) {
      const ExpertMatrixShape shape = layout().matrices[matrix];
      const ExpertCatalog::TensorNames names = namer()(id, matrix);
      if (options.mxfp4) {
        add(names.data, "U8", shape.rows, shape.cols / 2, {.kind = ValueRule::Kind::kPackedByte});
        add(names.scales, "U8", shape.rows, shape.cols / 32, {.kind = ValueRule::Kind::kScaleByte});
      } else {
        add(names.data, "BF16", shape.rows, shape.cols, {});
      }
    }
  }
  return tensors;
}

Files ExpertModel::make_files() {
  std::vector<WrittenTensor> tensors = make_tensors();
  for (const WrittenTensor& tensor : tensors) bytes_[tensor.name] = tensor.bytes;
  std::map<std::string, std::vector<WrittenTensor>> shards;
  uint64_t draws = 0;
  const auto below = [&](size_t limit) { return value_hash(options.scatter_seed, draws++) % limit; };
  if (options.scatter_seed > 0) {
    const size_t count = tensors.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t size = below(3) * below(700);
      if (size > 0) tensors.push_back({"filler." + std::to_string(i), "U8", {size}, std::string(size, '\xfe')});
    }
    for (size_t i = tensors.size(); i > 1; --i) std::swap(tensors[i - 1], tensors[below(i)]);
  }
  for (WrittenTensor& tensor : tensors) {
    const size_t file = options.scatter_seed > 0 ? below(options.file_count) : 0;
    shards["s" + std::to_string(file) + ".safetensors"].push_back(std::move(tensor));
  }
  Files made{{"model.safetensors.index.json", index_text(shards)}};
  for (const auto& [name, content] : shards) {
    made[name] = safetensors_bytes(content, options.scatter_seed > 0 ? below(5000) : 0);
  }
  return made;
}

std::string stored_data(const WeightView& view) {
  return {reinterpret_cast<const char*>(view.data), view.rows * view.row_bytes};
}

std::string stored_scales(const WeightView& view) {
  return view.scales ? std::string(reinterpret_cast<const char*>(view.scales), view.rows * view.scale_row_bytes) : "";
}

}  // namespace headrace::test
