// A copy of libvelo_adapters.so in a file of its own: a second velo in the process.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

namespace hosts {

class second_copy {
 public:
  second_copy() {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    path_ = folder_ + "/libvelo_adapters_other.so";
    std::ifstream in(VELO_ADAPTERS, std::ios::binary);
    std::ofstream(path_, std::ios::binary) << in.rdbuf();
  }
  ~second_copy() {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  second_copy(const second_copy&) = delete;
  second_copy& operator=(const second_copy&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string folder_ = "/tmp/velo_torch_XXXXXX", path_;
};

}  // namespace hosts
