// The search for folders that belong to this user alone.
#include "comm/transport/shm/rendezvous_folder.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/failure.hpp"
#include "core/host/clock.hpp"

namespace velo::comm {
namespace {

// The path of a group with the longest name still fits in a socket address.
constexpr std::size_t longest = 35;
constexpr char shared_folder[] = "/tmp";
constexpr std::int64_t scan_rarity = 20;  // scans of /tmp take a twentieth of the time

struct finding {
  bool exists = false, is_private = false, is_ours = false;
  std::string text;  // its mode and owner, or an error
};

finding inspect(const std::string& folder) {
  finding found;
  struct stat is {};
  if (lstat(folder.c_str(), &is) != 0) {
    found.exists = errno != ENOENT;
    found.text = std::strerror(errno);
    return found;
  }
  found.exists = true;
  found.is_ours = is.st_uid == geteuid();
  found.is_private = found.is_ours && S_ISDIR(is.st_mode) && (is.st_mode & 077) == 0;
  found.text = core::text("mode %o of user %u", static_cast<unsigned>(is.st_mode),
                          static_cast<unsigned>(is.st_uid));
  return found;
}

std::string own_name() {
  return "velo-" + std::to_string(geteuid());
}

// The runtime folders that the system creates for each user.
std::vector<std::string> runtime_folders() {
  std::vector<std::string> all;
  const char* given = secure_getenv("XDG_RUNTIME_DIR");
  if (given != nullptr && *given == '/') all.emplace_back(given);
  const std::string usual = "/run/user/" + std::to_string(geteuid());
  if (all.empty() || all[0] != usual) all.push_back(usual);
  const auto is_none = [](const std::string& folder) {
    return folder.size() + sizeof "/velo" - 1 > longest || !inspect(folder).is_private;
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_none), all.end());
  for (std::string& folder : all) folder += "/velo";
  return all;
}

// Folders in /tmp whose names begin with the usual folder's name.
std::vector<std::string> other_folders() {
  std::vector<std::string> all;
  const std::string begin = own_name() + "-";
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(shared_folder), &closedir);
  while (const dirent* entry = entries != nullptr ? readdir(entries.get()) : nullptr) {
    if (std::strncmp(entry->d_name, begin.c_str(), begin.size()) != 0) continue;
    std::string folder = std::string(shared_folder) + "/" + entry->d_name;
    if (folder.size() <= longest && inspect(folder).is_private) all.push_back(std::move(folder));
  }
  std::sort(all.begin(), all.end());
  return all;
}

finding made(const std::string& folder) {
  const int error = mkdir(folder.c_str(), 0700) != 0 ? errno : 0;
  finding found = inspect(folder);
  if (!found.exists && error != 0) found.text = std::strerror(error);
  return found;
}

}  // namespace

std::vector<std::string> rendezvous_folders::find() {
  std::vector<std::string> all = runtime_folders();
  all.push_back(std::string(shared_folder) + "/" + own_name());
  const std::int64_t begin = core::now_ns();
  if (begin >= next_scan_ns_) {
    others_ = other_folders();
    const std::int64_t end = core::now_ns();
    next_scan_ns_ = end + (end - begin) * scan_rarity;
  }
  all.insert(all.end(), others_.begin(), others_.end());
  const auto is_none = [](const std::string& folder) { return !inspect(folder).is_private; };
  all.erase(std::remove_if(all.begin(), all.end(), is_none), all.end());
  return all;
}

std::string rendezvous_folder() {
  std::string tried;
  const auto can_be = [&](const std::string& folder) {
    const finding found = made(folder);
    if (!found.is_private) tried += (tried.empty() ? "" : "; ") + folder + ": " + found.text;
    return found.is_private;
  };
  for (const std::string& folder : runtime_folders())
    if (can_be(folder)) return folder;
  std::string usual = std::string(shared_folder) + "/" + own_name();
  if (can_be(usual)) return usual;
  if (const finding found = inspect(usual); found.exists && !found.is_ours) {
    for (const std::string& folder : other_folders()) return folder;
    std::string other = usual + "-XXXXXX";
    if (mkdtemp(other.data()) != nullptr) return other;
    tried += "; " + other + ": " + std::strerror(errno);
  }
  core::fail(VELO_ERR_IO, "desc.name", "a folder for sockets that is this user's alone",
             tried.c_str());
}

}  // namespace velo::comm
