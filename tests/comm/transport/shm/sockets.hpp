// The socket of a rendezvous, from outside of the library: its path, processes that connect to it
// or listen in its place, and what a process holds of descriptors, threads and shared areas.
#pragma once

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport/shm/rendezvous_folder.hpp"

namespace velo::testing {

inline std::string socket_path(const std::string& name) {
  return comm::rendezvous_folder() + "/" + name + ".socket";
}

inline sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Connects to rank 0's socket, once it listens.
inline int connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  while (true) {
    const int line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(line, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return line;
    close(line);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

inline int listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  REQUIRE(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listening, 16) == 0);
  return listening;
}

inline std::vector<std::string> entries_of(const std::string& folder,
                                           const std::string& beginning) {
  std::vector<std::string> all;
  DIR* entries = opendir(folder.c_str());
  while (const dirent* one = entries != nullptr ? readdir(entries) : nullptr)
    if (std::strncmp(one->d_name, beginning.c_str(), beginning.size()) == 0)
      all.push_back(one->d_name);
  if (entries != nullptr) closedir(entries);
  return all;
}

// The mappings of areas of groups in this process, each of which may have several.
struct mapping {
  char* begin;
  std::size_t bytes;
};
inline std::vector<mapping> mapped_areas() {
  std::vector<mapping> all;
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin, end;
    if (std::strstr(line, "memfd:velo") != nullptr &&
        std::sscanf(line, "%lx-%lx", &begin, &end) == 2)
      all.push_back({reinterpret_cast<char*>(begin), end - begin});
  }
  std::fclose(maps);
  return all;
}

// The counts of the descriptors, threads and shared areas that a process holds.
struct holdings {
  std::size_t descriptors = entries_of("/proc/self/fd", "").size(),
              threads = entries_of("/proc/self/task", "").size(), areas = mapped_areas().size();
  std::int64_t beyond(const holdings& before) const {
    const auto more = [](std::size_t now, std::size_t then) {
      return static_cast<std::int64_t>(now) - static_cast<std::int64_t>(then);
    };
    return more(descriptors, before.descriptors) + 1000 * more(threads, before.threads) +
           1000000 * more(areas, before.areas);
  }
};

}  // namespace velo::testing
