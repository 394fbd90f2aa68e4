// The pipe, whose number is in the environment of the ranks.
#include "examples/decoder/ranks/first_line.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

constexpr const char* variable = "VELO_DECODER_FIRST_LINE";
constexpr std::chrono::milliseconds longest_wait{500};  // of a rank that only missed another one

bool is_there(int pipe) noexcept {
  pollfd one{pipe, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0;
}

}  // namespace

first_line::first_line() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    fail("cannot make a pipe for the ranks: %s", std::strerror(errno));
  reads_ = descriptor(ends[0]);
  writes_ = descriptor(ends[1]);
  if (::write(writes_.get(), "!", 1) != 1)
    fail("cannot write into a pipe for the ranks: %s", std::strerror(errno));
}

void first_line::pass_on() const {
  ::fcntl(reads_.get(), F_SETFD, 0);
  ::setenv(variable, std::to_string(reads_.get()).c_str(), 1);
}

void first_line::take() const noexcept {
  char byte;
  while (::read(reads_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
}

bool takes_first_line(bool is_cause, bool otherwise) noexcept {
  const char* number = std::getenv(variable);
  if (number == nullptr) return otherwise;
  const int pipe = std::atoi(number);
  const auto until = std::chrono::steady_clock::now() + longest_wait;
  while (!is_cause && is_there(pipe) && std::chrono::steady_clock::now() < until) ::usleep(5000);
  char byte;
  ssize_t got;
  while ((got = ::read(pipe, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got > 0 || (got < 0 && errno != EAGAIN);
}

}  // namespace decoder
