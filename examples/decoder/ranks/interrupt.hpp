// Ctrl-C, the SIGTERM of a batch scheduler, and the SIGHUP of a closing terminal. The trainer asks
// for them between steps, so that it can save before it leaves.
//
// The first signal of each kind is remembered; a second one ends the program at once. A rank that
// waits for missing ranks has nothing to save: there the first one ends it. It prints a sentence,
// except after end_rank: the user has read why the run ends.
//
// An interrupted mpirun sends its ranks SIGCONT, SIGTERM a second later and SIGKILL after one more
// (each waits for `odls_base_sigkill_timeout`). SIGCONT from mpirun counts as SIGTERM here, so that
// all of this time is there to save.
#pragma once

#include <sys/types.h>

namespace decoder {

void catch_interrupts();

// While an object of this class lives, a signal ends the program.
class ended_by_signals {
 public:
  ended_by_signals();
  ~ended_by_signals();
  ended_by_signals(const ended_by_signals&) = delete;
  ended_by_signals& operator=(const ended_by_signals&) = delete;
};

// Sends a signal to a rank that this process started, since another rank has ended. That rank or
// this process has printed the reason.
void end_rank(pid_t rank, int signal);

int interrupt();  // the signal; 0: none
inline bool interrupted() {
  return interrupt() != 0;
}

}  // namespace decoder
