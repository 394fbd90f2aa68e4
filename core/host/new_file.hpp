// The one way in which the library writes a file that a caller names.
//
// The bytes go to a new file beside the path, readable and writable only by its owner, which is
// then renamed to the path. So a symbolic link, a FIFO or a device at the path is refused and never
// opened, another hard link of an older file keeps its content, and a failure before the rename
// leaves the older file. Cost: system calls. tests/tree checks that no other source opens files to
// write.
#pragma once

#include <cstddef>
#include <string>

namespace velo::core {

class new_file {
 public:
  // argument: the path's name in a failure. Throws IO, ARGUMENT for an empty path.
  new_file(const char* path, const char* argument);
  ~new_file();  // removes a file that was not put in place
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  void write(const char* bytes, std::size_t count);                    // throws IO
  int try_write(const char* bytes, std::size_t count) const noexcept;  // errno; 0: all was written
  void put_in_place();  // writing may go on afterwards; throws IO
  void finish();  // closes first, since a full disk may show only then, and puts the file in place

 private:
  [[noreturn]] void refuse(const char* expected, int error) const;

  const char* const argument_;
  std::string path_, beside_;  // beside_: empty once in place
  int file_ = -1;
};

}  // namespace velo::core
