// A shared library opened for its symbols, closed when the last one who needs it is gone.
//
// It is opened with all its symbols resolved and none shown to others. The file is recorded as the
// loader found it, so that messages and introspection can say where a function comes from. Not hot.
#pragma once

#include <memory>
#include <string>

#include "core/invoke.hpp"

namespace velo::core {

class library {
 public:
  // path: what dlopen takes; nullptr is the process itself. Throws VELO_ERR_IO, the loader's
  // message as the cause.
  static std::shared_ptr<const library> open(const char* path, const char* argument);

  explicit library(void* loaded) : loaded_(loaded) {}
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  // Throws VELO_ERR_NOT_FOUND.
  any_function symbol(const char* name, const char* argument) const;

 private:
  void* loaded_;
};

// The file whose code or data holds an address, absolute; "" when none does.
std::string file_of(any_function address);

}  // namespace velo::core
