#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace headrace::test {

/// A file of tests/oracle/vectors, such as "kernels/router". Ends the test program when it is missing: it is committed.
nlohmann::json load_oracle_vectors(const std::string& name);

/// Names of the model vectors in tests/oracle/vectors/models, sorted: "groups", "tiny_k3", ...
std::vector<std::string> oracle_model_names();

}  // namespace headrace::test
