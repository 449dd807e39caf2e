// SPDX-License-Identifier: Apache-2.0
#include "cluster/view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "base/boot_id.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

constexpr const char* kShared = "/dev/shm";

void check(int result, const std::string& what) {
  if (result == 0) return;
  fail("the virtual cluster cannot {}: {}; see docs/cluster.md for what it needs", what,
       std::strerror(errno));
}

void mount_fresh(const char* type, const char* where, const char* options) {
  check(mount(type, where, type, MS_NOSUID | MS_NODEV, options),
        fmt::format("mount a {} on {}", type, where));
}

void put_file(const std::string& name, const std::string& text, const char* over) {
  const std::string file = std::string(kShared) + "/" + name;
  std::ofstream(file) << text;
  check(mount(file.c_str(), over, nullptr, MS_BIND, nullptr), std::string("cover ") + over);
}

// MPI libraries tell machines apart by host name or by this.
std::string random_boot_id() {
  std::random_device random;
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:08x}{:04x}\n", random(), random() & 0xffff,
                     random() & 0xfff, random() & 0xfff, random(), random() & 0xffff);
}

// A message of 64 KiB does not fit the window that a connection gets by default, which grows only
// over hundreds of them; until then such a message takes five times as long. Kernels that keep this
// to themselves have it so.
void widen_windows() {
  constexpr long kWindow = 1 << 20;
  const char* const file = "/proc/sys/net/ipv4/tcp_rmem";
  long least = 0, usual = 0, most = 0;
  std::ifstream(file) >> least >> usual >> most;
  if (usual == 0 || usual >= kWindow) return;
  std::ofstream(file) << least << ' ' << kWindow << ' ' << std::max(most, kWindow) << '\n';
}

// Where the kernel has it (br_netfilter), each packet on a bridge would go through the packet
// filters' hooks, which have no rules here: on a wire of 500 Mbit/s some percent of a core.
void spare_bridges_filters() {
  for (const char* const what : {"iptables", "ip6tables", "arptables"}) {
    std::ofstream(fmt::format("/proc/sys/net/bridge/bridge-nf-call-{}", what)) << "0\n";
  }
}

// /sys shows the network of the namespace that mounted it. The cgroups below it stay: they say
// which cores may be used.
void mount_sys() {
  const char* const cgroup = "/sys/fs/cgroup";
  const int groups =
      open_tree(AT_FDCWD, cgroup, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  mount_fresh("sysfs", "/sys", nullptr);
  if (groups < 0) return;
  const int moved = move_mount(groups, "", AT_FDCWD, cgroup, MOVE_MOUNT_F_EMPTY_PATH);
  close(groups);
  check(moved, "keep the cgroups in its nodes");
}

}  // namespace

void detach_mounts() {
  check(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "detach its mounts");
}

void write_script(const std::string& file, const std::string& text) {
  std::ofstream(file) << "#!/bin/sh\n" << text << '\n';
  check(chmod(file.c_str(), 0755), "make " + file + " a program");
}

void take_own_view(const std::string& host_name, const std::string& hosts) {
  check(sethostname(host_name.c_str(), host_name.size()), "name its nodes");
  mount_fresh("proc", "/proc", nullptr);
  mount_sys();
  widen_windows();
  spare_bridges_filters();
  // Files to be put over others need a file system; nobody needs its name any more afterwards.
  mount_fresh("tmpfs", kShared, "size=64k");
  put_file("hosts", hosts, "/etc/hosts");
  put_file("boot_id", random_boot_id(), kBootIdFile);
  // libfabric reads it twice in each process, to look for what no node here has: 0.15 s.
  constexpr const char* kSymbols = "/proc/kallsyms";
  if (access(kSymbols, F_OK) == 0) put_file("kallsyms", "", kSymbols);
  check(umount2(kShared, MNT_DETACH), "detach a tmpfs");
  mount_fresh("tmpfs", kShared, "mode=1777");
  check(mkdir(kNodeTemporary, 0777), std::string("make ") + kNodeTemporary);
  check(chmod(kNodeTemporary, 01777), std::string("open ") + kNodeTemporary);
}

}  // namespace carillon::cli
