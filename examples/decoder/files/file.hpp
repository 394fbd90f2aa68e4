// Files read whole, and files written to last.
//
// A durable_file counts and checksums what passes through it and is on the disk when `finish`
// returns. Every refusal of the operating system becomes a failure with the file's name and the
// reason. Not hot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace decoder {

std::string read_whole_file(const std::string& path);
std::string read_beginning(const std::string& path, std::size_t most);
// The same of a regular file; empty where there is none, or a device (/dev/full has no end).
std::string beginning_if_any(const std::string& path, std::size_t most);

// Refuses a file, named by a flag, that is to be written later and is something else now: it must
// not be there, or begin as `ours` does, and a file must be possible beside it.
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

// Opens /dev/null for standard input, output and error where they are closed, so that no file of
// the program's gets their numbers and what is printed to them.
void hold_standard_files();

}  // namespace decoder
