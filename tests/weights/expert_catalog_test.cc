#include "weights/expert_catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/alignment.h"
#include "weights/expert_model.h"

namespace headrace {
namespace {

using test::ExpertModel;
using test::WrittenTensor;

/// The rules that every placement keeps: whole blocks, equal residues, no two areas in touch of each other's bytes,
/// and every tensor inside one of the reads.
void expect_sound(const ExpertModel& model, const ExpertCatalog& catalog, ExpertId id) {
  ExpertCatalog::PlacedRecord record;
  catalog.place(id, record);
  auto areas = record.reads;
  std::ranges::sort(areas, {}, &ExpertCatalog::PlacedRead::slot_offset);
  for (size_t i = 0; i < areas.size(); ++i) {
    const size_t block = model.checkpoint->file(areas[i].file_index).block_bytes();
    EXPECT_EQ(areas[i].range.offset % block, 0u);
    EXPECT_EQ(areas[i].range.size % block, 0u);
    EXPECT_EQ(areas[i].slot_offset % block, 0u);
    EXPECT_LE(areas[i].slot_offset + areas[i].range.size, catalog.slot_bytes());
    const uint64_t begin_min = i > 0 ? areas[i - 1].slot_offset + areas[i - 1].range.size : 0;
    EXPECT_GE(areas[i].slot_offset, begin_min);
    EXPECT_LT(areas[i].range.offset, model.checkpoint->file(areas[i].file_index).size_bytes());
  }
  const std::vector<std::string> names = model.tensor_names(id);
  ASSERT_EQ(record.tensor_offsets.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorInfo info = *model.checkpoint->find(names[i]);
    const auto inside = [&](const ExpertCatalog::PlacedRead& read) {
      return read.file_index == info.file_index && read.range.offset <= info.range.offset &&
             info.range.end() <= read.range.end() &&
             record.tensor_offsets[i] == read.slot_offset + (info.range.offset - read.range.offset);
    };
    EXPECT_EQ(std::ranges::count_if(record.reads, inside), 1) << names[i];
  }
}

TEST(ExpertCatalog, PlacementsAreSoundForEveryBlockAndOrder) {
  for (const bool mxfp4 : {true, false}) {
    for (const size_t block : {1u, 512u, 4096u, 16'384u}) {
      for (const uint64_t seed : {0u, 1u, 2u}) {
        const ExpertModel model({.mxfp4 = mxfp4, .block_bytes = block, .scatter_seed = seed, .file_count = 1 + seed});
        const ExpertCatalog catalog = model.catalog().take_value();
        EXPECT_EQ(catalog.slot_bytes() % std::max<size_t>(4096, block), 0u);
        for (const ExpertId id : model.ids()) expect_sound(model, catalog, id);
      }
    }
  }
}

TEST(ExpertCatalog, AdjacentTensorsAreOneReadOfExactlyTheirBytes) {
  const ExpertModel model({.mxfp4 = true});
  const ExpertCatalog catalog = model.catalog().take_value();
  ExpertCatalog::PlacedRecord record;
  for (const ExpertId id : model.ids()) {
    catalog.place(id, record);
    ASSERT_EQ(record.reads.size(), 1u);
    EXPECT_EQ(record.reads[0].range.size, catalog.record_bytes());
  }
  EXPECT_EQ(catalog.slot_bytes(), align_up(uint64_t{catalog.record_bytes()}, 4096));
}

TEST(ExpertCatalog, ExtentsInOneBlockAreReadTogether) {
  // Three matrices of 24 bytes, a byte between them: apart for a file of single bytes, together in any block.
  std::vector<WrittenTensor> tensors;
  for (const char* name : {"w1", "w2", "w3"}) {
    tensors.push_back({std::string("l0.e0.") + name + ".weight", "BF16", {3, 4}, std::string(24, name[1])});
    tensors.push_back({std::string("gap.") + name, "U8", {1}, "g"});
  }
  for (const size_t block : {1u, 512u}) {
    ExpertModel model({.mxfp4 = false, .block_bytes = block, .layers = 1, .experts = 1, .tensors = tensors});
    const ExpertCatalog catalog =
        ExpertCatalog::build(*model.checkpoint, model.budget,
                             {1, 1, {{Format::kBf16, 3, 4}, {Format::kBf16, 3, 4}, {Format::kBf16, 3, 4}}},
                             [](ExpertId, size_t matrix) -> ExpertCatalog::TensorNames {
                               return {"l0.e0.w" + std::to_string(matrix + 1) + ".weight", ""};
                             })
            .take_value();
    ExpertCatalog::PlacedRecord record;
    catalog.place({0, 0}, record);
    EXPECT_EQ(record.reads.size(), block == 1 ? 3u : 1u);
  }
}

TEST(ExpertCatalog, ClaimsItsTensors) {
  const ExpertModel model({.mxfp4 = true});
  const size_t before = model.checkpoint->unclaimed_count();
  ASSERT_TRUE(model.catalog());
  EXPECT_EQ(before - model.checkpoint->unclaimed_count(), model.ids().size() * 6);
}

TEST(ExpertCatalog, RefusesTensorsOfAnotherKindByName) {
  const std::string name = "l1.e2.w2.weight";
  const std::pair<WrittenTensor, const char*> changes[] = {
      {{name, "F32", {64, 32}, std::string(64 * 32 * 4, 'x')},
       "tensor l1.e2.w2.weight: F32 [64, 32], expected BF16 [64, 32]"},
      {{name, "BF16", {32, 64}, std::string(64 * 32 * 2, 'x')}, "BF16 [32, 64], expected BF16 [64, 32]"},
      {{name, "BF16", {64, 32, 1}, std::string(64 * 32 * 2, 'x')}, "BF16 [64, 32, 1], expected"},
      {{name, "BF16", {64, 31}, std::string(64 * 31 * 2, 'x')}, "BF16 [64, 31], expected"},
      {{name, "BF16", {0, 32}, ""}, "BF16 [0, 32], expected"},
      {{"other", "BF16", {1}, "xx"}, "tensor l1.e2.w2.weight is missing"},
  };
  for (const auto& [replacement, reason] : changes) {
    const ExpertModel model({.mxfp4 = false, .replacements = {{name, replacement}}});
    const size_t used_bytes = model.budget.used_bytes();
    const Result<ExpertCatalog> catalog = model.catalog();
    ASSERT_FALSE(catalog) << reason;
    EXPECT_EQ(catalog.error().code, Code::kFormat);
    EXPECT_NE(catalog.error().message.find(reason), std::string::npos) << catalog.error().message;
    EXPECT_EQ(model.budget.used_bytes(), used_bytes);
  }
}

TEST(ExpertCatalog, TakesScalesOfBytesAndOfTheirOwnType) {
  const std::string name = "l0.e0.w1.weight_scale";
  const WrittenTensor scales{name, "F8_E8M0", {40, 2}, std::string(80, 'x')};
  const ExpertModel model({.mxfp4 = true, .replacements = {{name, scales}}});
  EXPECT_TRUE(model.catalog());
}

TEST(ExpertCatalog, RefusesShapesThatTheFormatCannotHave) {
  const ExpertModel model({.mxfp4 = true});
  const auto names = [](ExpertId, size_t) -> ExpertCatalog::TensorNames { return {"a", "b"}; };
  for (const ExpertMatrixShape shape :
       {ExpertMatrixShape{Format::kMxfp4, 8, 33}, ExpertMatrixShape{Format::kMxfp4, 0, 32},
        ExpertMatrixShape{Format::kBf16, 8, 0}}) {
    const auto catalog = ExpertCatalog::build(*model.checkpoint, model.budget, {1, 1, {shape}}, names);
    ASSERT_FALSE(catalog);
    EXPECT_EQ(catalog.error().code, Code::kFormat);
  }
  const auto catalog =
      ExpertCatalog::build(*model.checkpoint, model.budget, {SIZE_MAX, SIZE_MAX, {{Format::kBf16, 8, 8}}}, names);
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().code, Code::kFormat);
}

TEST(ExpertCatalog, IsRefusedWithoutMemory) {
  const ExpertModel model({.mxfp4 = true});
  Budget budget(1000);
  const Result<ExpertCatalog> catalog = ExpertCatalog::build(*model.checkpoint, budget, model.layout(), model.namer());
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().code, Code::kBudget);
}

}  // namespace
}  // namespace headrace
