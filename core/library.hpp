// A shared library opened for its symbols, and closed with its last user.
//
// It is opened with all its symbols resolved and none visible to other libraries. The file is
// recorded as the loader found it, so that messages and introspection can name the file of a
// function. Not hot.
#pragma once

#include <memory>
#include <string>

#include "core/invoke.hpp"

namespace velo::core {

class library {
 public:
  // path: as for dlopen; nullptr: the process itself. Throws VELO_ERR_IO with the loader's message
  // as the cause.
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

// The absolute path of the file whose code or data contains an address; "" if there is none.
std::string file_of(any_function address);

}  // namespace velo::core
