// pretrain: a language model from text, trained by velo's operators. --help explains the rest.
//
// Read on in train.cpp (a run), trainer.cpp (a step), model.cpp and
// decoder_layer.cpp (the operators).
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <velo/velo.hpp>

#include "run.hpp"

namespace {

constexpr const char* too_large =
    "pretrain: not enough memory for these settings and this text; a smaller batch or model needs "
    "less\n";

}  // namespace

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
    std::fputs(too_large, stderr);
  } catch (const velo::error& failure) {
    if (failure.status() == VELO_ERR_MEMORY) {
      std::fputs(too_large, stderr);
    } else {
      std::fprintf(stderr, "pretrain: %s\n", failure.what());
    }
  } catch (const std::exception& failure) {  // pretrain::failure says all there is to say
    std::fprintf(stderr, "pretrain: %s\n", failure.what());
  }
  return 1;
}
