// Ctrl-C, the SIGTERM of a batch scheduler, or the SIGHUP of a terminal that closes, as a question
// the trainer asks between steps, so that it can save before it leaves.
//
// The first of each is remembered; a second one ends the program at once, for who cannot wait. A
// rank that waits for ranks which have not come has nothing to save: there the first one ends it.
//
// mpirun sends its ranks SIGCONT when it is interrupted, SIGTERM a second later and SIGKILL after
// one more (each waits for `odls_base_sigkill_timeout`). From mpirun SIGCONT counts as SIGTERM, so
// that all of this time is there to save.
#pragma once

namespace decoder {

void catch_interrupts();

// While one of these lives, a signal ends the program, and says so.
class ended_by_signals {
 public:
  ended_by_signals();
  ~ended_by_signals();
  ended_by_signals(const ended_by_signals&) = delete;
  ended_by_signals& operator=(const ended_by_signals&) = delete;
};

int interrupt();  // the signal; 0: none
inline bool interrupted() {
  return interrupt() != 0;
}

}  // namespace decoder
