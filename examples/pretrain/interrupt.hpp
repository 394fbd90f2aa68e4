// Ctrl-C, the SIGTERM of a batch scheduler, or the SIGHUP of a terminal that closes, as a question
// the trainer asks between steps, so that it can save before it leaves.
//
// The first of each is remembered; a second one ends the program at once, for who cannot wait.
#pragma once

namespace pretrain {

void catch_interrupts();
int interrupt();  // the signal; 0: none
inline bool interrupted() {
  return interrupt() != 0;
}

}  // namespace pretrain
