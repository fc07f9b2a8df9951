#pragma once

#include <optional>
#include <string>

namespace headrace {

/// Temperatures in degrees Celsius; absent where the machine does not tell.
struct Temperatures {
  std::optional<double> cpu_c;    ///< The hottest processor sensor.
  std::optional<double> drive_c;  ///< The hottest NVMe drive.
};

/// Reads the sensors below `folder` (the hwmon class of Linux).
Temperatures read_temperatures(const std::string& folder = "/sys/class/hwmon");

}  // namespace headrace
