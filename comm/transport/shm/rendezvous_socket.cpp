// Locking the name, then listening.
#include "comm/transport/shm/rendezvous_socket.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "comm/transport/shm/rendezvous_folder.hpp"
#include "core/failure.hpp"

namespace velo::comm {
namespace {

// Removes the locks of this folder that no process holds, with their sockets. Ranks 0 that were
// killed left them, and their names may never be used again.
void remove_abandoned(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir(folder.c_str()), &closedir);
  if (all == nullptr) return;
  while (const dirent* one = readdir(all.get())) {
    const std::string file = one->d_name;
    const std::size_t dot = file.rfind(".lock");
    if (dot == std::string::npos || dot + 5 != file.size()) continue;
    const std::string path = folder + "/" + file;
    const descriptor lock(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!lock || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat held {
    }, named{};
    if (fstat(lock.get(), &held) != 0 || stat(path.c_str(), &named) != 0) continue;
    if (held.st_ino != named.st_ino) continue;  // its owner has removed it
    unlink((folder + "/" + file.substr(0, dot) + ".socket").c_str());
    unlink(path.c_str());
  }
}

}  // namespace

void fail_io(const char* expected, int error) {
  core::fail(VELO_ERR_IO, "desc.name", expected, "another answer of the system",
             std::strerror(error));
}

// A lock does not count if another process has removed its file meanwhile. After a failure the file
// is removed only if this object locked or made it, since another rank 0 may hold it. The lock is
// tried for 20 ms, since remove_abandoned() holds locks briefly.
rendezvous_socket::name_lock::name_lock(const std::string& folder, const std::string& name)
    : file_(folder + "/" + name + ".lock") {
  for (int tries = 0; !lock_; ++tries) {
    constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    descriptor made(open(file_.c_str(), flags | O_EXCL, 0600));
    const bool is_new = static_cast<bool>(made);
    if (!made && errno == EEXIST) made = descriptor(open(file_.c_str(), flags, 0600));
    if (!made) fail_io("a lock in the rendezvous folder", errno);
    const auto give_up = [&](const char* expected, bool is_ours) {
      const int error = errno;
      if (is_ours) unlink(file_.c_str());
      fail_io(expected, error);
    };
    if (flock(made.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) give_up("a lock in the rendezvous folder", is_new);
      if (tries < 20) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      core::fail(VELO_ERR_STATE, "desc.name", "a name at which nobody is met now",
                 core::text("'%s', at which rank 0 of others waits", name.c_str()));
    }
    struct stat held {
    }, named{};
    if (fstat(made.get(), &held) != 0) give_up("the number of a lock's file", true);
    const bool is_named = stat(file_.c_str(), &named) == 0;
    if (!is_named && errno != ENOENT) give_up("the number of a lock's file", true);
    if (is_named && held.st_ino == named.st_ino) lock_ = std::move(made);
  }
}

rendezvous_socket::name_lock::~name_lock() {
  unlink(file_.c_str());
}

rendezvous_socket::rendezvous_socket(const std::string& name)
    : rendezvous_socket(rendezvous_folder(), name) {}

rendezvous_socket::rendezvous_socket(const std::string& folder, const std::string& name)
    : name_lock_(folder, name), socket_(folder + "/" + name + ".socket") {
  remove_abandoned(folder);
  unlink(socket_.c_str());
  listening_ = listen_at(socket_);
  if (listening_) return;
  const int error = errno;
  unlink(socket_.c_str());
  fail_io("a socket in the rendezvous folder", error);
}

rendezvous_socket::~rendezvous_socket() {
  unlink(socket_.c_str());
}

}  // namespace velo::comm
