// A gzip file written piece by piece through new_file: it appears at its path when it is
// whole. gzip's checksum and length let a reader find every flipped or missing byte.
#pragma once

#include <zlib.h>

#include <cstddef>

#include "core/host/new_file.hpp"

namespace velo::core {

class gzip_file {
 public:
  explicit gzip_file(const char* path);  // throws IO, MEMORY
  ~gzip_file();                          // removes a file that was not finished
  gzip_file(const gzip_file&) = delete;
  gzip_file& operator=(const gzip_file&) = delete;

  void write(const char* bytes, std::size_t count);  // throws IO
  void finish();                                     // throws IO

 private:
  void deflate_all(int flush);

  new_file file_;
  z_stream z_{};
  Bytef packed_[16384];
};

}  // namespace velo::core
