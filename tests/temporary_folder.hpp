// A folder for the files of a test, which goes with it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace velo::testing {

class temporary_folder {
 public:
  temporary_folder() {
    REQUIRE(mkdtemp(name_.data()) != nullptr);
    path_ = name_;
  }
  temporary_folder(temporary_folder&& from) noexcept : path_(std::exchange(from.path_, "")) {}
  ~temporary_folder() {
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, with the folders on its way, and returns its path.
  std::string put(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = at(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator()));
  }

 private:
  std::string name_ = "/tmp/velo-test-XXXXXX", path_;
};

}  // namespace velo::testing
