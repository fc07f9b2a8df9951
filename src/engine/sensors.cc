#include "engine/sensors.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace headrace {
namespace {

constexpr std::array<std::string_view, 4> kCpuSensors = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
constexpr int kInputsMax = 64;

/// The hottest input of one sensor; inputs count in thousandths of a degree.
std::optional<double> hottest_input(const std::filesystem::path& sensor) {
  std::optional<double> hottest;
  for (int index = 1; index <= kInputsMax; ++index) {
    std::ifstream file(sensor / ("temp" + std::to_string(index) + "_input"));
    double thousandths = 0;
    if (!(file >> thousandths)) continue;
    hottest = std::max(hottest.value_or(thousandths / 1000), thousandths / 1000);
  }
  return hottest;
}

void keep_hottest(std::optional<double>& hottest, std::optional<double> other) {
  if (other && (!hottest || *other > *hottest)) hottest = other;
}

}  // namespace

Temperatures read_temperatures(const std::string& folder) {
  Temperatures result;
  std::error_code failure;  // A machine without sensors is no error.
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    std::ifstream file(entry.path() / "name");
    std::string name;
    file >> name;
    if (std::ranges::find(kCpuSensors, name) != kCpuSensors.end()) {
      keep_hottest(result.cpu_c, hottest_input(entry.path()));
    } else if (name == "nvme") {
      keep_hottest(result.drive_c, hottest_input(entry.path()));
    }
  }
  return result;
}

}  // namespace headrace
