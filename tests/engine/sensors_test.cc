#include "engine/sensors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/test_files.h"

namespace headrace {
namespace {

TEST(Sensors, TheHottestOfEachKindIsReported) {
  const test::TempFolder folder;
  for (const char* name : {"hwmon0", "hwmon1", "hwmon2", "hwmon3"})
    std::filesystem::create_directory(folder.file(name));
  folder.write("hwmon0/name", "coretemp\n");
  folder.write("hwmon0/temp1_input", "41000\n");
  folder.write("hwmon0/temp2_input", "52500\n");
  folder.write("hwmon1/name", "nvme\n");
  folder.write("hwmon1/temp1_input", "38850\n");
  folder.write("hwmon2/name", "nvme\n");
  folder.write("hwmon2/temp1_input", "45000\n");
  folder.write("hwmon3/name", "acpitz\n");
  folder.write("hwmon3/temp1_input", "99000\n");
  const Temperatures temperatures = read_temperatures(folder.path());
  EXPECT_EQ(temperatures.cpu_c, 52.5);
  EXPECT_EQ(temperatures.drive_c, 45.0);
}

TEST(Sensors, AMachineThatDoesNotTellGivesNothing) {
  const test::TempFolder folder;
  EXPECT_FALSE(read_temperatures(folder.path()).cpu_c);
  EXPECT_FALSE(read_temperatures(folder.file("absent")).drive_c);
}

}  // namespace
}  // namespace headrace
