#include "weights/expert_check.h"

#include <cstring>

#include "weights/elements.h"

namespace headrace {
namespace {

/// An E8M0 scale that is not a number.
constexpr int kNanScale = 255;

Status check_tensor(const ExpertCatalog& catalog, const ExpertCatalog::Tensor& tensor, const std::byte* data) {
  const ExpertMatrixShape& shape = catalog.layout().matrices[tensor.matrix];
  if (tensor.is_scales) {
    const void* found = std::memchr(data, kNanScale, tensor.bytes);
    if (!found) return {};
    return error(Code::kFormat, "scale %td is not a number", static_cast<const std::byte*>(found) - data);
  }
  // With block scales every code of the weights is a number.
  if (format_scale_row_bytes(shape.format, shape.cols) > 0) return {};
  return check_finite(shape.format, data, shape.rows * shape.cols);
}

}  // namespace

Status check_expert(const ExpertCatalog& catalog, ExpertId id, std::span<const std::byte* const> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ExpertCatalog::Tensor& tensor = catalog.tensors()[i];
    Status status = check_tensor(catalog, tensor, tensors[i]);
    if (status) continue;
    return with_context(status.take_error(), "%s: %s of matrix %zu", catalog.file_of(id, i).path().c_str(),
                        tensor.is_scales ? "scales" : "weights", tensor.matrix);
  }
  return {};
}

}  // namespace headrace
