// Files that are read whole, and files that are on the disk when they are finished.
//
// A durable_file counts and checksums its bytes; `finish` returns when they are on the disk. Every
// refusal of the operating system becomes a failure with the file's name and the reason. Not hot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace decoder {

std::string read_whole_file(const std::string& path);
std::string read_beginning(const std::string& path, std::size_t most);
// Reads a regular file; empty where there is none, or a device (/dev/full has no end).
std::string beginning_if_any(const std::string& path, std::size_t most);

// Refuses the file that a flag names, to be written later: it must not exist or begin as `ours`
// does, and a file beside it must be possible.
void require_replaceable(const char* flag, const std::string& path, const std::string& ours,
                         const char* what);

// A file descriptor with an owner.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor();

  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// Opens a regular file for reading.
descriptor open_to_read(const std::string& path);

class durable_file {
 public:
  explicit durable_file(std::string path);  // must not exist

  void write(const void* data, std::size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  void finish();  // fsync and close

  std::uint64_t bytes() const { return bytes_; }
  std::uint32_t crc() const { return crc_; }

 private:
  std::string path_;
  descriptor file_;
  std::uint64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

std::uint32_t crc32_of(std::uint32_t crc, const void* data, std::size_t bytes);

void sync_directory(const std::string& path);

// Opens /dev/null for standard input, output and error where they are closed, so that none of the
// program's files gets their numbers and receives what is printed.
void hold_standard_files();

}  // namespace decoder
