// The lock of a rendezvous where the system does not tell which file it is: rank 0 says so, and does not
// try for ever.
//
// fstat is this program's.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "comm/transport/rendezvous.hpp"
#include "comm/transport/rendezvous_folder.hpp"
#include "comm/transport/shared_area.hpp"
#include "core/failure.hpp"

namespace {

std::atomic<bool> failing{false};

}  // namespace

extern "C" int fstat(int file, struct stat* found) noexcept {
  if (!failing) return static_cast<int>(syscall(SYS_fstat, file, found));
  errno = EIO;
  return -1;
}

TEST_CASE("a lock whose file cannot be told is an error of the system") {
  const std::string name = "lock-" + std::to_string(getpid());
  velo::core::failure said;
  failing = true;
  try {
    velo::comm::rendezvous(
        {name, 0, 2, std::int64_t{1} << 32, velo::comm::shared_area::least_slot(2), {}});
  } catch (const velo::core::failure& one) {
    said = one;
  }
  failing = false;
  CHECK(said.code == VELO_ERR_IO);
  CHECK(std::string(said.argument) == "desc.name");
  CHECK(std::string(said.cause).find("Input/output error") != std::string::npos);
  unlink((velo::comm::rendezvous_folder() + "/" + name + ".lock").c_str());
}
