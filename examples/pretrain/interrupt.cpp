// The one signal handler, for three signals.
#include "interrupt.hpp"

#include <atomic>
#include <csignal>

namespace pretrain {
namespace {

std::atomic<int> caught{0};  // read by the threads of several ranks
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { caught.store(signal, std::memory_order_relaxed); };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup's wish stands
}

int interrupt() {
  return caught.load(std::memory_order_relaxed);
}

}  // namespace pretrain
