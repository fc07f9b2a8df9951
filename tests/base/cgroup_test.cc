#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace headrace {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// A folder that stands for "/", filled with the files of a made-up system.
class CgroupTest : public testing::Test {
 protected:
  CgroupTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headrace-cgroup-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  CgroupLimits limits_of(const std::map<std::string, std::string>& files) const {
    for (const auto& [path, text] : files) {
      const std::filesystem::path full = root_ / path;
      std::filesystem::create_directories(full.parent_path());
      std::ofstream(full) << text;
    }
    return read_cgroup_limits(root_.string());
  }

  std::filesystem::path root_;
};

const std::string kRootMount = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
const std::string kUnifiedMount =
    kRootMount + "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(CgroupTest, ASystemWithoutCgroupsSetsNoLimit) {
  const CgroupLimits limits = limits_of({{"proc/self/mountinfo", kRootMount}});
  EXPECT_EQ(limits.cpu_count, kNoLimit);
  EXPECT_EQ(limits.memory_bytes, SIZE_MAX);
}

TEST_F(CgroupTest, UnifiedLimitsAreTheTightestOfAllAncestors) {
  const CgroupLimits limits = limits_of({{"proc/self/cgroup", "0::/user.slice/shell.scope\n"},
                                         {"proc/self/mountinfo", kUnifiedMount},
                                         {"sys/fs/cgroup/user.slice/memory.max", "4000000\n"},
                                         {"sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"},
                                         {"sys/fs/cgroup/user.slice/shell.scope/memory.max", "9000000\n"},
                                         {"sys/fs/cgroup/user.slice/shell.scope/cpu.max", "150000 100000\n"},
                                         {"sys/fs/cgroup/other/memory.max", "1\n"}});
  EXPECT_EQ(limits.memory_bytes, 4000000u);
  EXPECT_DOUBLE_EQ(limits.cpu_count, 1.5);
}

TEST_F(CgroupTest, UnifiedGroupsWithoutLimitsSayMax) {
  const CgroupLimits limits = limits_of({{"proc/self/cgroup", "0::/a\n"},
                                         {"proc/self/mountinfo", kUnifiedMount},
                                         {"sys/fs/cgroup/a/memory.max", "max\n"},
                                         {"sys/fs/cgroup/a/memory.high", "max\n"},
                                         {"sys/fs/cgroup/a/cpu.max", "max 100000\n"}});
  EXPECT_EQ(limits.cpu_count, kNoLimit);
  EXPECT_EQ(limits.memory_bytes, SIZE_MAX);
}

TEST_F(CgroupTest, UnifiedHighMarkIsALimitToo) {
  const CgroupLimits limits = limits_of({{"proc/self/cgroup", "0::/a\n"},
                                         {"proc/self/mountinfo", kUnifiedMount},
                                         {"sys/fs/cgroup/a/memory.max", "8000000\n"},
                                         {"sys/fs/cgroup/a/memory.high", "6000000\n"}});
  EXPECT_EQ(limits.memory_bytes, 6000000u);
}

TEST_F(CgroupTest, APrivateNamespaceShowsItsOwnGroupAsTheRoot) {
  const CgroupLimits limits = limits_of({{"proc/self/cgroup", "0::/\n"},
                                         {"proc/self/mountinfo", kUnifiedMount},
                                         {"sys/fs/cgroup/memory.max", "5000000\n"},
                                         {"sys/fs/cgroup/cpu.max", "200000 100000\n"}});
  EXPECT_EQ(limits.memory_bytes, 5000000u);
  EXPECT_DOUBLE_EQ(limits.cpu_count, 2);
}

TEST_F(CgroupTest, AHostNamespacePathIsTakenBelowTheMountedGroup) {
  const CgroupLimits limits =
      limits_of({{"proc/self/cgroup", "4:memory:/docker/abc/child\n3:cpu,cpuacct:/docker/abc\n"},
                 {"proc/self/mountinfo",
                  kRootMount + "31 22 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                               "32 22 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"},
                 {"sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n"},
                 {"sys/fs/cgroup/memory/child/memory.limit_in_bytes", "3000000\n"},
                 {"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1\n"},
                 {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"},
                 {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(limits.memory_bytes, 3000000u);
  EXPECT_DOUBLE_EQ(limits.cpu_count, 0.5);
}

TEST_F(CgroupTest, AGroupOutsideTheMountGetsTheLimitsOfTheMountPoint) {
  const CgroupLimits limits = limits_of({{"proc/self/cgroup", "0::/../sibling\n"},
                                         {"proc/self/mountinfo", kUnifiedMount},
                                         {"sys/fs/cgroup/memory.max", "5000000\n"},
                                         {"sys/fs/sibling/memory.max", "1\n"}});
  EXPECT_EQ(limits.memory_bytes, 5000000u);
}

TEST_F(CgroupTest, FirstVersionWithoutLimitsSaysMinusOneAndAHugeNumber) {
  const CgroupLimits limits =
      limits_of({{"proc/self/cgroup", "2:memory:/\n1:cpu:/\n"},
                 {"proc/self/mountinfo", kRootMount + "31 22 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n"
                                                      "32 22 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu\n"},
                 {"cg/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                 {"cg/cpu/cpu.cfs_quota_us", "-1\n"},
                 {"cg/cpu/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(limits.cpu_count, kNoLimit);
  EXPECT_EQ(limits.memory_bytes, 9223372036854771712u);
}

TEST_F(CgroupTest, AHybridSystemCombinesBothVersions) {
  const CgroupLimits limits = limits_of(
      {{"proc/self/cgroup", "4:memory:/jobs/one\n1:name=systemd:/jobs\n0::/jobs/one\n"},
       {"proc/self/mountinfo", kRootMount + "41 22 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                                            "40 22 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
                                            "35 22 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
       {"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "2000000\n"},
       {"sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n"},
       {"sys/fs/cgroup/unified/jobs/one/cpu.max", "300000 100000\n"}});
  EXPECT_EQ(limits.memory_bytes, 2000000u);
  EXPECT_DOUBLE_EQ(limits.cpu_count, 3);
}

TEST_F(CgroupTest, DamagedFilesSetNoLimit) {
  const CgroupLimits limits =
      limits_of({{"proc/self/cgroup", "0::/a\n\n::\nnonsense\n0:\n"},
                 {"proc/self/mountinfo", kUnifiedMount + "\n1\n- cgroup2\n1 2 3 - cgroup2 x y\n"},
                 {"sys/fs/cgroup/a/memory.max", "12monkeys\n"},
                 {"sys/fs/cgroup/memory.max", ""},
                 {"sys/fs/cgroup/a/cpu.max", "100000\n"},
                 {"sys/fs/cgroup/cpu.max", "100000 0\n"}});
  EXPECT_EQ(limits.cpu_count, kNoLimit);
  EXPECT_EQ(limits.memory_bytes, SIZE_MAX);
}

TEST(CgroupParsing, MembershipPathsMayHoldColons) {
  const auto memberships = parse_cgroup_memberships("5:cpu,cpuacct:/a:b/c\n0::/x\n");
  ASSERT_EQ(memberships.size(), 2u);
  EXPECT_EQ(memberships[0].controllers, "cpu,cpuacct");
  EXPECT_EQ(memberships[0].path, "/a:b/c");
  EXPECT_EQ(memberships[1].controllers, "");
}

TEST(CgroupParsing, MountPathsAreUnescapedAndOtherTypesLeftOut) {
  const auto mounts = parse_cgroup_mounts(
      "1 0 0:1 / /proc rw - proc proc rw\n"
      "2 0 0:2 /my\\040group /mnt/with\\134slash\\9 rw master:1 - cgroup cgroup rw,memory\n");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_FALSE(mounts[0].is_unified);
  EXPECT_EQ(mounts[0].root, "/my group");
  EXPECT_EQ(mounts[0].mount_point, "/mnt/with\\slash\\9");
  EXPECT_EQ(mounts[0].controllers, "rw,memory");
}

TEST(CgroupParsing, FoldersGoFromTheGroupUpToTheMountPoint) {
  const std::vector<CgroupMount> mounts = {{true, "", "/", "/cg"}};
  EXPECT_EQ(cgroup_folders({"", "/a/b"}, mounts), (std::vector<std::string>{"/cg/a/b", "/cg/a", "/cg"}));
  EXPECT_EQ(cgroup_folders({"", "/"}, mounts), std::vector<std::string>{"/cg"});
  EXPECT_TRUE(cgroup_folders({"memory", "/a"}, mounts).empty());
}

TEST(CgroupParsing, TheMountThatHoldsTheGroupIsPreferred) {
  const std::vector<CgroupMount> mounts = {{true, "", "/other", "/first"}, {true, "", "/jobs", "/second"}};
  EXPECT_EQ(cgroup_folders({"", "/jobs/a"}, mounts), (std::vector<std::string>{"/second/a", "/second"}));
  // "/jobsite" is not below "/jobs".
  EXPECT_EQ(cgroup_folders({"", "/jobsite"}, mounts), std::vector<std::string>{"/first"});
  // A mount of an outer namespace: its root and the path climb alike.
  EXPECT_EQ(cgroup_folders({"", "/../job"}, {{true, "", "/..", "/outer"}}),
            (std::vector<std::string>{"/outer/job", "/outer"}));
}

TEST(SystemFile, TooLargeFilesAreNotRead) {
  EXPECT_FALSE(read_system_file("/dev/zero"));
  EXPECT_FALSE(read_system_file("/nonexistent"));
  EXPECT_FALSE(read_system_file("/"));
}

}  // namespace
}  // namespace headrace
