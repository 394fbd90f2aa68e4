// libvelo_adapters.so as a host sees it: a file to open, symbols to look up, closed in the
// destructor. Nothing of it is linked.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "velo/adapters.h"

namespace hosts {

class library {
 public:
  library(const char* path, int flags) : handle_(dlopen(path, flags)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~library() { dlclose(handle_); }
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  template <class F>
  F* function(const std::string& name) const {
    void* found = dlsym(handle_, name.c_str());
    if (found == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<F*>(found);
  }

 private:
  void* handle_;
};

inline std::string last_error(const library& adapters) {
  char text[2048];
  adapters.function<decltype(velo_adapters_last_error)>("velo_adapters_last_error")(
      text, sizeof text, nullptr);
  return text;
}

// An exception that a framework raises: its own kind, and its text.
struct host_error : std::runtime_error {
  host_error(std::string kind_of_error, const std::string& text)
      : std::runtime_error(text), kind(std::move(kind_of_error)) {}
  std::string kind;
};

}  // namespace hosts
