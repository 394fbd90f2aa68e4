// Where a long text goes: to a caller's buffer, cut to its size, or to a file that is there whole or
// not at all. What is written collects in 256 KiB first. Cost: a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace velo::memory {

class sink {
 public:
  sink() : buffer_(new char[size]) {}
  virtual ~sink() = default;
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  // The place for the next bytes, at least `room` of them; took(end) says where they end.
  static constexpr std::size_t room = 8192;
  char* reserve() {
    if (size - used_ < room) empty();
    return buffer_.get() + used_;
  }
  void took(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.get()); }

  void put(const std::string& text) {
    empty();
    write(text.data(), text.size());
  }

 protected:
  virtual void write(const char* bytes, std::size_t count) = 0;
  void empty() {
    write(buffer_.get(), used_);
    used_ = 0;
  }

 private:
  static constexpr std::size_t size = std::size_t{256} << 10;

  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
};

// Keeps what fits and counts the rest.
class buffer_sink final : public sink {
 public:
  buffer_sink(char* buffer, std::uint64_t capacity) : to_(buffer), capacity_(capacity) {}

  // Ends with a zero byte; how many bytes a buffer needs for all.
  std::uint64_t finish();

 private:
  void write(const char* bytes, std::size_t count) override;

  char* to_;
  std::uint64_t capacity_;
  std::uint64_t written_ = 0;
};

// Writes beside the path under a name of its own, readable by the owner alone, and takes the path's
// place when all is there. A failure leaves what was at the path before. Refuses a path where
// something else than an ordinary file lies, a symbolic link too. Throws IO.
class file_sink final : public sink {
 public:
  explicit file_sink(const char* path);
  ~file_sink() override;

  void finish();

 private:
  void write(const char* bytes, std::size_t count) override;
  [[noreturn]] void refuse(const char* what, int error) const;

  std::string path_, written_as_;
  int file_ = -1;
};

}  // namespace velo::memory
