// The one signal handler.
#include "interrupt.hpp"

#include <csignal>

namespace pretrain {
namespace {

volatile std::sig_atomic_t seen = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { seen = 1; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

bool interrupted() {
  return seen != 0;
}

}  // namespace pretrain
