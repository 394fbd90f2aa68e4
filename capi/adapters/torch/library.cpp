// Definitions and kernels given to torch; see the header.
#include "capi/adapters/torch/library.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "capi/adapters/failure.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

// torch keeps the pointer; the loader's text lives as long as the library.
const char* own_path() {
  Dl_info where{};
  const bool found = dladdr(reinterpret_cast<const void*>(&velo_torch_register), &where) != 0;
  return found ? where.dli_fname : "libvelo_adapters.so";
}

}  // namespace

torch_library::~torch_library() {
  if (made_ != nullptr) torch_.delete_library(made_);
}

void torch_library::must(torch::error failed, const std::string& what) const {
  if (failed == 0) return;
  const char* why = torch_.last_error != nullptr ? torch_.last_error() : "it is on stderr";
  refuse(VELO_ERR_STATE,
         "torch: expected it to take %s, which it refuses where another copy of velo has "
         "registered; got: %.800s",
         what.c_str(), why);
}

void torch_library::open_definitions(const char* name_space) {
  name_space_ = name_space;
  must(torch_.library_init_fragment(name_space, own_path(), 1, &made_), "a library");
}

void torch_library::open_kernels(const char* name_space, const char* key) {
  name_space_ = name_space;
  must(torch_.library_init_impl(name_space, key, own_path(), 1, &made_), "kernels");
}

void torch_library::define(const std::string& schema) {
  must(torch_.library_def(made_, schema.c_str()), name_space_ + "::" + schema);
}

void torch_library::implement(const std::string& name, torch::kernel kernel) {
  const std::uint64_t version = std::min(torch_.abi_version(), torch::written_against);
  must(torch_.library_impl_for != nullptr
           ? torch_.library_impl_for(made_, name.c_str(), kernel, version)
           : torch_.library_impl(made_, name.c_str(), kernel),
       "a kernel of " + name_space_ + "::" + name);
}

torch::library torch_library::keep() {
  const torch::library kept = made_;
  made_ = nullptr;
  return kept;
}

}  // namespace velo::adapters
