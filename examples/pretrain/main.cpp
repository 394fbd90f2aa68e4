// pretrain: a language model from text, trained by velo's operators. --help explains the rest.
//
// Read on in train.cpp (a run); examples/decoder has the rest, above all train/trainer.cpp (a
// step), model/model.cpp and model/decoder_layer.cpp (the operators).
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <velo/velo.hpp>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/file.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/pretrain/commands.hpp"

namespace {

// Checks that the text was printed, which is the result here; a run's result is its files.
int printed() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "pretrain: cannot write the output: %s\n", std::strerror(errno));
  return 1;
}

constexpr const char* too_large =
    "pretrain: not enough memory for these settings and this text; a smaller batch or model needs "
    "less\n";

}  // namespace

int main(int count, char** words) {
  decoder::program_name = "pretrain";
  decoder::hold_standard_files();
  decoder::watch_json_memory();
  // A file that grows too large, or a reader that went away, is then a failed write.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    pretrain::arguments given;
    pretrain::parse_arguments({words + 1, words + count}, given);
    if (given.help) {
      std::fputs(pretrain::help_text().c_str(), stdout);
      return printed();
    }
    if (!given.generate) return pretrain::train(given);
    pretrain::sample(given);
    return printed();
  } catch (const std::bad_alloc&) {
    std::fputs(too_large, stderr);
  } catch (const velo::error& failure) {
    if (failure.status() == VELO_ERR_MEMORY) {
      std::fputs(too_large, stderr);
    } else {
      std::fprintf(stderr, "pretrain: %s\n", failure.what());
    }
  } catch (const std::exception& failure) {  // decoder::failure says all there is to say
    std::fprintf(stderr, "pretrain: %s\n", failure.what());
  }
  return 1;
}
