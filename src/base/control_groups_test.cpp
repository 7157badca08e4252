// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include "base/machine_fixture.h"

namespace feedline::base {
namespace {

class ControlGroupsTest : public MadeMachine {
 protected:
  // Returns the groups' folders without the root, each prefixed with its version.
  std::vector<std::string> around(const std::string& controller, int pid = 0) {
    std::vector<std::string> folders;
    for (const ControlGroup& group : ControlGroups(root_, pid).around(controller))
      folders.push_back(std::to_string(group.version) + group.folder.substr(root_.size()));
    return folders;
  }
  void folder(const std::string& path) { write(path + "/cgroup.procs", ""); }
  using Folders = std::vector<std::string>;
};

TEST_F(ControlGroupsTest, GoesUpFromTheOwnGroupOfVersionTwo) {
  write("proc/self/cgroup", "0::/jobs/train\n");
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  folder("sys/fs/cgroup/jobs/train");
  EXPECT_EQ(around("cpu"), (Folders{"2/sys/fs/cgroup/jobs/train", "2/sys/fs/cgroup/jobs", "2/sys/fs/cgroup"}));
  EXPECT_EQ(ControlGroups(root_).version(), 2);
}

TEST_F(ControlGroupsTest, FindsVersionOneByItsOptionsWhereverItIsMounted) {
  write("proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/b\n1:name=systemd:/user\n");
  mount("/", "/groups of/cpu", "cgroup", "rw,cpu,cpuacct");
  mount("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  write("proc/self/mountinfo",
        "30 20 0:26 / /groups\\040of/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  folder("groups of/cpu/b");
  folder("sys/fs/cgroup/memory/a");
  EXPECT_EQ(around("cpu"), (Folders{"1/groups of/cpu/b", "1/groups of/cpu"}));
  EXPECT_EQ(around("memory"), (Folders{"1/sys/fs/cgroup/memory/a", "1/sys/fs/cgroup/memory"}));
  EXPECT_EQ(around("cpuset"), Folders{});
  EXPECT_EQ(ControlGroups(root_).version(), 1);
}

TEST_F(ControlGroupsTest, TellsBothVersionsOfAHybrid) {
  write("proc/self/cgroup", "3:cpu,cpuacct:/job\n0::/job\n");
  mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
  mount("/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
  folder("sys/fs/cgroup/unified/job");
  folder("sys/fs/cgroup/cpu,cpuacct/job");
  EXPECT_EQ(around("cpu"), (Folders{"1/sys/fs/cgroup/cpu,cpuacct/job", "1/sys/fs/cgroup/cpu,cpuacct",
                                    "2/sys/fs/cgroup/unified/job", "2/sys/fs/cgroup/unified"}));
  EXPECT_EQ(ControlGroups(root_).version(), 1);
}

TEST_F(ControlGroupsTest, CutsOffWhatOnlyTheHostSees) {
  write("proc/self/cgroup", "4:memory:/docker/abc/job\n");
  mount("/docker/abc", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  folder("sys/fs/cgroup/memory/job");
  EXPECT_EQ(around("memory"), (Folders{"1/sys/fs/cgroup/memory/job", "1/sys/fs/cgroup/memory"}));
}

TEST_F(ControlGroupsTest, TakesTheTopWhereTheGroupLiesOutsideOfWhatIsMounted) {
  folder("sys/fs/cgroup/docker");
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  for (const char* path : {"0::/../other\n", "0::/not/there\n", "0::/..\n"}) {
    write("proc/self/cgroup", path);
    EXPECT_EQ(around("memory"), Folders{"2/sys/fs/cgroup"}) << path;
  }
  write("proc/self/cgroup", "0::/dockers\n");  // has an existing group's name only as a prefix
  EXPECT_EQ(around("memory"), Folders{"2/sys/fs/cgroup"});
}

TEST_F(ControlGroupsTest, ReadsPathsOfAnotherNamespaceLikeTheMountsOnes) {
  write("proc/self/cgroup", "0::/../other/job\n");
  mount("/..", "/sys/fs/cgroup", "cgroup2", "rw");
  folder("sys/fs/cgroup/other/job");
  EXPECT_EQ(around("cpu"), (Folders{"2/sys/fs/cgroup/other/job", "2/sys/fs/cgroup/other", "2/sys/fs/cgroup"}));
  write("proc/self/cgroup", "0::/../../beyond\n");
  EXPECT_EQ(around("cpu"), Folders{"2/sys/fs/cgroup"});
}

TEST_F(ControlGroupsTest, PrefersTheMountThatShowsTheProcess) {
  write("proc/7/cgroup", "0::/a/b\n");
  mount("/x", "/mnt/x", "cgroup2", "rw");
  mount("/a/b", "/mnt/b", "cgroup2", "rw");
  mount("/", "/mnt/all", "cgroup2", "rw");
  mount("/y", "/mnt/y", "cgroup2", "rw");
  folder("mnt/x/with/many");
  folder("mnt/b");
  folder("mnt/all/a/b");
  folder("mnt/y");
  EXPECT_EQ(around("cpu", 7), (Folders{"2/mnt/all/a/b", "2/mnt/all/a", "2/mnt/all"}));
}

TEST_F(ControlGroupsTest, LooksAtTheUsualPlacesWithoutMountinfoAndFindsNothingInNothing) {
  EXPECT_EQ(around("cpu"), Folders{});
  EXPECT_EQ(ControlGroups(root_).version(), 0);
  folder("sys/fs/cgroup/memory");
  EXPECT_EQ(around("memory").front(), "2/sys/fs/cgroup");
  EXPECT_EQ(ControlGroups(root_).own_folder("memory", 1), root_ + "/sys/fs/cgroup/memory");
  EXPECT_EQ(ControlGroups(root_).own_folder("cpu", 1), "");
}

TEST_F(ControlGroupsTest, MakesNothingOfWhatIsNoSuchFile) {
  write("proc/self/cgroup", "::::\nnonsense\n\n4:memory\n0:\n");
  write("proc/self/mountinfo", "- cgroup\n1 2 3 - cgroup\nx - cgroup2 - cgroup2\n\\ - cgroup a \\04\n");
  EXPECT_EQ(around("memory"), Folders{});
}

}  // namespace
}  // namespace feedline::base
