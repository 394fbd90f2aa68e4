// A copy of libvelo_adapters.so in a file of its own: a second velo in the process.
#pragma once

#include <filesystem>
#include <string>

#include "tests/temporary_folder.hpp"

namespace hosts {

class second_copy {
 public:
  second_copy() { std::filesystem::copy_file(VELO_ADAPTERS, path_); }
  const char* path() const { return path_.c_str(); }

 private:
  const velo::testing::temporary_folder folder_;
  const std::string path_ = folder_.at("libvelo_adapters_other.so");
};

}  // namespace hosts
