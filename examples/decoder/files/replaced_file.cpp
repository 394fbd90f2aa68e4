// Writes aside, syncs and renames.
#include "examples/decoder/files/replaced_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/safetensors.hpp"

namespace decoder {
namespace {

namespace fs = std::filesystem;

// A new file beside a path, which is removed unless it has taken the path's place.
class file_beside {
 public:
  explicit file_beside(const std::string& path) : path_(path), name_(path + ".saving") {
    std::error_code ignored;
    fs::remove(name_, ignored);  // of a killed run
  }
  file_beside(const file_beside&) = delete;
  file_beside& operator=(const file_beside&) = delete;
  ~file_beside() {
    try {
      std::error_code ignored;
      fs::remove(name_, ignored);
    } catch (const std::bad_alloc&) {  // the next run removes it
    }
  }
  const std::string& name() const { return name_; }
  void take_place() const {
    if (std::rename(name_.c_str(), path_.c_str()) != 0)
      fail("%s: cannot put the file into place: %s", path_.c_str(), std::strerror(errno));
  }

 private:
  std::string path_, name_;
};

}  // namespace

void require_replaceable_tensors(const std::string& path) {
  const fs::file_status now = fs::symlink_status(path);
  if (fs::exists(now)) {
    if (!fs::is_regular_file(now))
      fail("%s: exists and is no regular file; it is left as it is", path.c_str());
    try {
      const safetensors_reader before(path);
    } catch (const failure&) {
      fail("%s: exists and holds no tensors; it is left as it is", path.c_str());
    }
  }
  const file_beside tried(path);
  durable_file file(tried.name());
  file.finish();
}

void replace_file(const std::string& path, const std::function<void(durable_file&)>& write) {
  const file_beside aside(path);
  durable_file file(aside.name());
  write(file);
  file.finish();
  aside.take_place();
}

}  // namespace decoder
