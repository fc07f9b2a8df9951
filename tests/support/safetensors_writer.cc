#include "support/safetensors_writer.h"

#include <nlohmann/json.hpp>

namespace headrace::test {

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  return bytes + header + data;
}

std::string safetensors_bytes(const std::vector<WrittenTensor>& tensors, size_t header_padding) {
  std::string data;
  for (const WrittenTensor& tensor : tensors) data += tensor.bytes;
  return safetensors_bytes(header_text(tensors) + std::string(header_padding, ' '), data);
}

std::string header_entry(const WrittenTensor& tensor, uint64_t begin) {
  std::string shape;
  for (const uint64_t dim : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
  return nlohmann::json(tensor.name).dump() + ":{\"dtype\":\"" + tensor.type + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes.size()) + "]}";
}

std::string header_text(const std::vector<WrittenTensor>& tensors) {
  std::string text = "{\"__metadata__\":{\"format\":\"pt\"}";
  uint64_t begin = 0;
  for (const WrittenTensor& tensor : tensors) {
    text += "," + header_entry(tensor, begin);
    begin += tensor.bytes.size();
  }
  return text + "}";
}

std::string index_text(const std::map<std::string, std::vector<WrittenTensor>>& shards) {
  uint64_t total = 0;
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const auto& [file, tensors] : shards) {
    for (const WrittenTensor& tensor : tensors) {
      map[tensor.name] = file;
      total += tensor.bytes.size();
    }
  }
  return nlohmann::ordered_json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump();
}

}  // namespace headrace::test
