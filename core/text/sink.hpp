// The destination of a long text: a caller's buffer, cut to its size, or a file that appears
// completely or not at all. Writes are buffered in 256 KiB. Cost: a copy.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "core/host/new_file.hpp"

namespace velo::core {

class sink {
 public:
  sink() : buffer_(new char[size]) {}
  virtual ~sink() = default;
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  // Returns the address for the next bytes, with room for at least `room`. took(end) says where
  // they end.
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

// Stores what fits and counts the rest.
class buffer_sink final : public sink {
 public:
  buffer_sink(char* buffer, std::uint64_t capacity) : to_(buffer), capacity_(capacity) {}

  // Ends the text with a zero byte; returns the bytes that a buffer needs for all of it.
  std::uint64_t finish();

 private:
  void write(const char* bytes, std::size_t count) override;

  char* to_;
  std::uint64_t capacity_;
  std::uint64_t written_ = 0;
};

// A file that appears completely or not at all (core/host/new_file.hpp). Throws IO.
class file_sink final : public sink {
 public:
  explicit file_sink(const char* path) : file_(path, "path") {}

  void finish() {
    empty();
    file_.finish();
  }

 private:
  void write(const char* bytes, std::size_t count) override { file_.write(bytes, count); }

  new_file file_;
};

}  // namespace velo::core
