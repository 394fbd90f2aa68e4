// POSIX files; every error becomes a failure with the file's name.
#include "examples/decoder/files/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "examples/decoder/failure.hpp"
#include "tools/velo/new_file.hpp"

namespace decoder {
namespace {

[[noreturn]] void refused(const std::string& path, const char* doing) {
  const int reason = errno;
  fail("%s: cannot %s: %s", path.c_str(), doing, std::strerror(reason));
}

// Fills `text` from `filled` on, as far as the file and the text go; returns how much is filled.
std::size_t fill(const std::string& path, const descriptor& file, std::string& text,
                 std::size_t filled) {
  while (filled < text.size()) {
    const ssize_t got = ::read(file.get(), &text[filled], text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refused(path, "read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = other.release();
  return *this;
}

descriptor::~descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int descriptor::release() {
  return std::exchange(fd_, -1);
}

descriptor open_to_read(const std::string& path) {
  // O_NONBLOCK: opening a pipe in the place of a file must not wait for a writer.
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) refused(path, "open");
  struct stat facts;
  if (::fstat(file.get(), &facts) != 0) refused(path, "examine");
  if (!S_ISREG(facts.st_mode)) fail("%s: not a regular file", path.c_str());
  return file;
}

std::string read_whole_file(const std::string& path) {
  const descriptor file = open_to_read(path);
  struct stat facts;
  if (::fstat(file.get(), &facts) != 0) refused(path, "examine");
  std::string text(static_cast<std::size_t>(facts.st_size) + 1, '\0');
  std::size_t filled = 0;
  while ((filled = fill(path, file, text, filled)) == text.size()) {
    text.resize(2 * text.size());  // it grew since fstat, or is in /proc
  }
  text.resize(filled);
  return text;
}

std::string read_beginning(const std::string& path, std::size_t most) {
  std::string text(most, '\0');
  text.resize(fill(path, open_to_read(path), text, 0));
  return text;
}

void require_replaceable(const char* flag, const std::string& path, const std::string& ours,
                         const char* what) {
  const auto refuse = [&](const char* why) { fail("%s: %s %s", flag, path.c_str(), why); };
  const auto refuse_writing = [&] {
    refuse((std::string("cannot be written: ") + std::strerror(errno)).c_str());
  };
  struct stat there {};
  const bool is_there = ::lstat(path.c_str(), &there) == 0;
  if (!is_there && errno != ENOENT) refuse_writing();
  if (is_there && !S_ISREG(there.st_mode)) refuse("exists and is no regular file");
  const std::string before = beginning_if_any(path, ours.size());
  if (!before.empty() && before != ours)
    refuse((std::string("exists and is not ") + what + "; it is left as it is").c_str());
  std::string beside = command::name_beside(path);  // the file is written here first
  const descriptor file(::mkostemp(beside.data(), O_CLOEXEC));
  if (file.get() < 0) refuse_writing();
  ::unlink(beside.c_str());
}

std::string beginning_if_any(const std::string& path, std::size_t most) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  std::string text(most, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

durable_file::durable_file(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
  if (file_.get() < 0) refused(path_, "create");
}

void durable_file::write(const void* data, std::size_t bytes) {
  crc_ = crc32_of(crc_, data, bytes);
  bytes_ += bytes;
  auto rest = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(file_.get(), rest, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refused(path_, "write");
    rest += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void durable_file::finish() {
  if (::fsync(file_.get()) != 0) refused(path_, "write");
  if (::close(file_.release()) != 0) refused(path_, "close");
}

std::uint32_t crc32_of(std::uint32_t crc, const void* data, std::size_t bytes) {
  if (bytes == 0) return crc;  // zlib would take a null pointer for a wish to begin anew
  return static_cast<std::uint32_t>(::crc32_z(crc, static_cast<const Bytef*>(data), bytes));
}

void sync_directory(const std::string& path) {
  const descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) refused(path, "open");
  if (::fsync(directory.get()) != 0) refused(path, "sync");
}

void hold_standard_files() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) < 0)
      (void)!::open("/dev/null", O_RDWR);  // takes the lowest number
  }
}

}  // namespace decoder
