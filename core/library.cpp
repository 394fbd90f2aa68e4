// dlopen, dlsym and dlclose, with the loader's messages kept.
#include "core/library.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/failure.hpp"
#include "core/host/memory.hpp"

namespace velo::core {

std::shared_ptr<const library> library::open(const char* path, const char* argument) {
  if (path != nullptr && *path == 0)  // the loader takes "" for the process itself, as NULL
    fail(VELO_ERR_ARGUMENT, argument, "the path of a library", "an empty text");
  const auto made = std::make_shared<library>(nullptr);
  made->loaded_ = again_with_memory([&] {
    errno = 0;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  });
  if (made->loaded_ == nullptr) {
    if (errno == ENOMEM) throw std::bad_alloc();
    const char* message = dlerror();
    fail(VELO_ERR_IO, argument, "a library the loader can open", text("\"%s\"", path),
         message == nullptr ? "" : message);
  }
  return made;
}

library::~library() {
  if (loaded_ != nullptr) dlclose(loaded_);
}

any_function library::symbol(const char* name, const char* argument) const {
  dlerror();
  void* found = dlsym(loaded_, name);
  if (found == nullptr) {
    const char* message = dlerror();
    fail(VELO_ERR_NOT_FOUND, argument, "an exported function", text("\"%s\"", name),
         message == nullptr ? "the symbol's value is zero" : message);
  }
  any_function address = nullptr;
  std::memcpy(&address, &found, sizeof address);
  return address;
}

std::string file_of(any_function address) {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(address), &where) == 0 || where.dli_fname == nullptr)
    return "";
  char absolute[PATH_MAX];
  return realpath(where.dli_fname, absolute) != nullptr ? absolute : where.dli_fname;
}

}  // namespace velo::core
