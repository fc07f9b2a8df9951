#include "models/tensor_loader.h"

namespace headrace {

Status TensorLoader::count(const std::string& name) {
  const auto info = checkpoint_.find(full_name(name));
  if (!info) return error(Code::kFormat, "%s is missing", full_name(name).c_str());
  element_count_ += info->shape.element_count();
  stored_bytes_ += info->range.size;
  hasher_.add(name);
  hasher_.add(std::string_view(dtype_name(info->dtype)));
  hasher_.add(uint64_t{info->shape.rank});
  for (size_t i = 0; i < info->shape.rank; ++i) hasher_.add(info->shape.dims[i]);
  return {};
}

std::vector<float> TensorLoader::hashed(std::vector<float> numbers) {
  hasher_.add(std::as_bytes(std::span(numbers)));
  return numbers;
}

Result<TrunkMatrix> TensorLoader::matrix(const std::string& name, size_t rows, size_t cols) {
  TRY(count(name));
  return trunk_.add_matrix(full_name(name), rows, cols);
}

Result<TrunkMatrix> TensorLoader::whole_matrix(const std::string& name, size_t rows, size_t cols) {
  TRY(count(name));
  return trunk_.add_whole_matrix(full_name(name), rows, cols);
}

Result<TrunkMatrix> TensorLoader::row_table(const std::string& name, size_t rows, size_t cols) {
  TRY(count(name));
  return trunk_.add_row_table(full_name(name), rows, cols);
}

Result<std::vector<float>> TensorLoader::vector(const std::string& name, size_t element_count) {
  TRY(count(name));
  reservations_.push_back(TRY(budget_.reserve(element_count * sizeof(float), "norms, biases and other small tensors")));
  return hashed(TRY(trunk_.read_vector(full_name(name), element_count)));
}

Result<std::vector<float>> TensorLoader::vector_prefix(const std::string& name, size_t element_count) {
  TRY(count(name));
  reservations_.push_back(TRY(budget_.reserve(element_count * sizeof(float), "norms, biases and other small tensors")));
  return hashed(TRY(trunk_.read_vector_prefix(full_name(name), element_count)));
}

Status TensorLoader::skip(const std::string& name, size_t element_count) {
  TRY(count(name));
  const TensorInfo info = TRY(checkpoint_.claim(full_name(name)));
  if (info.shape.element_count() == element_count) return {};
  return error(Code::kFormat, "tensor %s: shape %s, expected %zu elements", full_name(name).c_str(),
               info.shape.text().c_str(), element_count);
}

}  // namespace headrace
