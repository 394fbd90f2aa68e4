// The one way in which the library writes a file that a caller names.
//
// The bytes go to a new file beside the path, readable and writable by its owner alone, and that
// file takes the path's place by a rename. So a symbolic link, a FIFO or a device at the path is
// refused and never opened, another hard link of an older file keeps its content, and a failure
// before the rename leaves the older file. Cost: system calls. tests/tree holds that no other
// source opens files to write.
#pragma once

#include <cstddef>
#include <string>

namespace velo::core {

class new_file {
 public:
  // argument: what a failure calls the path. Throws IO, ARGUMENT for an empty path.
  new_file(const char* path, const char* argument);
  ~new_file();  // removes a file that was not put in place
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  void write(const char* bytes, std::size_t count);                    // throws IO
  int try_write(const char* bytes, std::size_t count) const noexcept;  // errno; 0: all was written
  void put_in_place();  // may be written on afterwards; throws IO
  void finish();        // closes, then puts in place: a full disk may show at the close alone

 private:
  [[noreturn]] void refuse(const char* expected, int error) const;

  const char* const argument_;
  std::string path_, beside_;  // beside_: empty when in place
  int file_ = -1;
};

}  // namespace velo::core
