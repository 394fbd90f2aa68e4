// pretrain: a language model from text, trained by velo's operators. --help explains the rest.
//
// Read on in train.cpp (a run), trainer.cpp (a step), model.cpp and
// decoder_layer.cpp (the operators).
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "run.hpp"

int main(int count, char** words) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is then a failed write, which is
                                  // told like a full disk
  try {
    pretrain::arguments given;
    pretrain::parse_arguments({words + 1, words + count}, given);
    if (given.help) {
      std::fputs(pretrain::help_text().c_str(), stdout);
      return 0;
    }
    return given.generate ? pretrain::sample(given) : pretrain::train(given);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "pretrain: not enough memory for these settings and this text\n");
  } catch (
      const std::exception& failure) {  // pretrain::failure and velo::error say all there is to say
    std::fprintf(stderr, "pretrain: %s\n", failure.what());
  }
  return 1;
}
