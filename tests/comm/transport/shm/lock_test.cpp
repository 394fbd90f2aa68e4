// The lock of a rendezvous where the system does not lock its file, or does not tell which file it
// is: rank 0 says so, does not try for ever, and leaves no file that it made. And locks that killed
// processes left.
//
// fstat, stat and flock are this program's.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/rendezvous.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"
#include "comm/transport/shm/rendezvous_socket.hpp"
#include "tests/core/fails.hpp"

namespace {

enum class call { none, fstat, stat, flock };
std::atomic<call> failing{call::none};

template <class... Arguments>
int pass_on(call which, long number, Arguments... arguments) {
  if (failing != which) return static_cast<int>(syscall(number, arguments...));
  errno = which == call::flock ? ENOLCK : EIO;
  return -1;
}

std::string lock_of(const std::string& name) {
  return velo::comm::rendezvous_folder() + "/" + name + ".lock";
}

// The failure of rank 0 where a call fails.
velo::testing::call_record rendezvous_without(call which, const std::string& name) {
  failing = which;
  auto caught = velo::testing::thrown_by([&] {
    velo::comm::rendezvous(
        {name, 0, 2, std::int64_t{1} << 32, velo::comm::shared_area::least_slot(2), {}});
  });
  failing = call::none;
  return caught;
}

}  // namespace

extern "C" int fstat(int file, struct stat* found) noexcept {
  return pass_on(call::fstat, SYS_fstat, file, found);
}
extern "C" int stat(const char* path, struct stat* found) noexcept {
  return pass_on(call::stat, SYS_stat, path, found);
}
extern "C" int flock(int file, int how) noexcept {
  return pass_on(call::flock, SYS_flock, file, how);
}

TEST_CASE("a lock that cannot be had is an error of the system, and no file stays behind") {
  const std::string name = "lock-" + std::to_string(getpid());
  for (const call which : {call::fstat, call::stat, call::flock}) {
    INFO("call " << static_cast<int>(which));
    const auto caught = rendezvous_without(which, name);
    CHECK_REFUSED(caught, VELO_ERR_IO, "desc.name");
    CHECK(caught.cause == (which == call::flock ? "No locks available" : "Input/output error"));
    CHECK(access(lock_of(name).c_str(), F_OK) != 0);
  }
}

TEST_CASE("a lock that cannot be taken leaves the lock of another rank 0 in place") {
  const std::string name = "locked-" + std::to_string(getpid());
  const int others = open(lock_of(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(others >= 0);
  CHECK(rendezvous_without(call::flock, name).code == VELO_ERR_IO);
  CHECK(access(lock_of(name).c_str(), F_OK) == 0);
  close(others);
  unlink(lock_of(name).c_str());
}

TEST_CASE("a rank 0 removes the files of killed ones, and none of a waiting one") {
  const std::string name = "left-" + std::to_string(getpid()),
                    folder = velo::comm::rendezvous_folder() + "/";
  const auto is_there = [&](const std::string& file) {
    return access((folder + file).c_str(), F_OK) == 0;
  };
  const auto leave = [&](const std::string& of) {  // a process that ends without destructors
    const pid_t child = fork();
    if (child == 0) {
      new velo::comm::rendezvous_socket(of);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(is_there(of + ".lock"));
    CHECK(is_there(of + ".socket"));
  };
  {
    const velo::comm::rendezvous_socket waits(name + "-waits");
    leave(name + "-killed");
    const velo::comm::rendezvous_socket next(name + "-next");
    for (const char* kind : {".lock", ".socket"}) {
      CHECK_FALSE(is_there(name + "-killed" + kind));
      CHECK(is_there(name + "-waits" + kind));
      CHECK(is_there(name + "-next" + kind));
    }
    CHECK_THROWS_AS(velo::comm::rendezvous_socket(name + "-waits"), velo::core::failure);
    CHECK(is_there(name + "-waits.lock"));
  }
  CHECK_FALSE(is_there(name + "-waits.lock"));
  CHECK_FALSE(is_there(name + "-next.socket"));
}
