// The one signal handler, for three signals, and mpirun's warning before one of them.
#include "examples/decoder/ranks/interrupt.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

std::atomic<int> caught{0};  // read by the threads of several ranks
std::atomic<bool> ends{false};
std::atomic<bool> is_explained{false};  // by the rank that ended first, or by the launcher
std::atomic<pid_t> launcher{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<pid_t>::is_always_lock_free);

void end(int signal) {
  if (is_explained.load(std::memory_order_relaxed)) ::_exit(128 + signal);
  constexpr char words[] = ": interrupted while it waited for the other ranks\n";
  const iovec parts[] = {{const_cast<char*>(program_name), std::strlen(program_name)},
                         {const_cast<char*>(words), sizeof words - 1}};
  if (::writev(2, parts, 2) < 0) ::_exit(128 + signal);  // standard error is closed
  ::_exit(128 + signal);
}

void take(int signal) {
  if (ends.load(std::memory_order_relaxed)) end(signal);
  caught.store(signal, std::memory_order_relaxed);
}

// The kernel, shells and other launchers do not send signals by sigqueue.
bool is_from_end_rank(const siginfo_t& from) {
  return from.si_code == SI_QUEUE && from.si_pid == ::getppid();
}

// Reads /proc/PID/stat, whose second field is a name that may hold parentheses; 0: unknown.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos ||
      std::sscanf(line.c_str() + name_end + 1, " %*c %d", &parent) != 1)
    return 0;
  return parent;
}

// mpirun puts each process that it starts into a group of its own, and signals the group. A shell
// or a `timeout` in between is in the group; mpirun, or its daemon on another host, is the first
// parent outside.
pid_t first_parent_outside_group() {
  const pid_t group = ::getpgrp();
  pid_t parent = ::getppid();
  while (parent > 0 && ::getpgid(parent) == group) parent = parent_of(parent);
  return parent;
}

// A process that is stopped and continued by hand gets SIGCONT from another process, or from an
// mpirun that forwards it.
void catch_warning_of_mpirun() {
  if (!std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("OMPI_MCA_orte_forward_job_control"))
    return;
  launcher = first_parent_outside_group();
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* from, void*) {
    if (from->si_code == SI_USER && from->si_pid == launcher) take(SIGTERM);
  };
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigaction(SIGCONT, &action, nullptr);
}

}  // namespace

ended_by_signals::ended_by_signals() {
  ends = true;
  if (caught != 0) end(caught);
}

ended_by_signals::~ended_by_signals() {
  ends = false;
}

void catch_interrupts() {
  catch_warning_of_mpirun();
  struct sigaction action {};
  action.sa_sigaction = [](int signal, siginfo_t* from, void*) {
    if (is_from_end_rank(*from)) is_explained.store(true, std::memory_order_relaxed);
    take(signal);
  };
  action.sa_flags = SA_RESTART | SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup ignores SIGHUP
}

void end_rank(pid_t rank, int signal) {
  ::sigqueue(rank, signal, {});
}

int interrupt() {
  return caught.load(std::memory_order_relaxed);
}

}  // namespace decoder
