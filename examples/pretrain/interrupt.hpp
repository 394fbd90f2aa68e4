// Ctrl-C as a question the trainer asks between steps, so that it can save before it leaves.
//
// The first SIGINT is remembered; a second one ends the program at once, for who cannot wait.
#pragma once

namespace pretrain {

void catch_interrupts();
bool interrupted();

}  // namespace pretrain
