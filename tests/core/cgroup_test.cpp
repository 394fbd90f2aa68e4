// Quotas and limits of control groups, from files of the test's own: both versions, every level.
#include "core/host/cgroup.hpp"

#include <limits>
#include <string>

#include "tests/temporary_folder.hpp"

using namespace velo::core;

namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

// A folder with the list of groups and their files.
class groups : public velo::testing::temporary_folder {
 public:
  explicit groups(const std::string& list) : list_(put("list", list)) {}
  int processors() const { return cgroup_processors({list_.c_str(), path().c_str()}); }
  std::int64_t memory() const { return cgroup_memory({list_.c_str(), path().c_str()}); }

 private:
  std::string list_;
};

}  // namespace

TEST_CASE("without groups, or limits of theirs, nothing binds") {
  CHECK(cgroup_processors({"/none", "/none"}) == 0);
  CHECK(cgroup_memory({"/none", "/none"}) == none);
  const groups unbound("0::/job\n7:memory,cpu:/job\nno line of a group\n");
  unbound.put("job/cpu.max", "max 100000\n");
  unbound.put("job/memory.max", "max\n");
  unbound.put("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  unbound.put("memory/job/memory.usage_in_bytes", "5\n");
  unbound.put("cpu/job/cpu.cfs_quota_us", "-1\n");
  unbound.put("cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(unbound.processors() == 0);
  CHECK(unbound.memory() == none);
}

TEST_CASE("a quota is whole processors, rounded up, and the tightest of all levels") {
  const groups newer("0::/job/step\n");
  newer.put("job/step/cpu.max", "800000 100000\n");
  CHECK(newer.processors() == 8);
  newer.put("job/cpu.max", "250000 100000\n");
  CHECK(newer.processors() == 3);
  newer.put("cpu.max", "100000 100000\n");
  CHECK(newer.processors() == 1);
  const groups older("4:memory:/a\n1:cpu,cpuacct:/job/step\n");
  older.put("cpu/job/cpu.cfs_quota_us", "150000\n");
  older.put("cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(older.processors() == 2);
}

TEST_CASE("memory is what the tightest level has left, and the system's copies of files give way") {
  const groups newer("0::/job/step\n");
  newer.put("job/step/memory.max", "8000\n");
  newer.put("job/step/memory.current", "3000\n");
  CHECK(newer.memory() == 8000 - 1000 - 3000);
  newer.put("job/step/memory.stat", "anon 500\ninactive_file 2500\nactive_file 7\n");
  CHECK(newer.memory() == 8000 - 1000 - 500);
  newer.put("job/memory.max", "4000\n");
  newer.put("job/memory.current", "3000\n");
  CHECK(newer.memory() == 4000 - 500 - 3000);
  newer.put("job/memory.current", "3900\n");
  CHECK(newer.memory() == 0);
  const groups older("1:cpu:/x\n4:memory:/job/step\n");
  older.put("memory/job/memory.limit_in_bytes", "8000\n");
  older.put("memory/job/memory.usage_in_bytes", "3000\n");
  older.put("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n");
  CHECK(older.memory() == 8000 - 1000 - 2000);
}
