// The command line: the command, and the settings from defaults, checkpoint, file and flags, in
// this order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/checkpoint/llama_folder.hpp"
#include "examples/decoder/configuration/configuration.hpp"

namespace pretrain {

using namespace decoder;

struct arguments {
  bool help = false;
  bool generate = false;  // --generate: sample from --load, do not train
  bool resume = false;    // --resume: go on with the run that left the checkpoint
  std::string prompt;
  std::vector<std::string> words;  // all that was given
  configuration config;
  std::unique_ptr<checkpoint_reader> checkpoint;  // of --resume or --load
  std::unique_ptr<llama_folder> llama;            // of --load, where transformers wrote it

  const stored_weights* source() const {  // of --load; nullptr: fresh weights
    if (llama) return llama.get();
    return checkpoint.get();
  }
};

// Fills `into`; refuses unknown flags, flags without their value, combinations that make no sense,
// and checkpoints whose parts contradict each other.
void parse_arguments(const std::vector<std::string>& words, arguments& into);

std::string help_text();

}  // namespace pretrain
