// Sampling from a checkpoint without training.
#include <cstdio>

#include "examples/decoder/model/generate.hpp"
#include "examples/decoder/ranks/context.hpp"
#include "examples/pretrain/commands.hpp"

namespace pretrain {

std::string sample_from(const stored_weights& saved, const settings& values,
                        const std::string& prompt) {
  run_memory memory;
  const velo::context context = make_context(values.run, memory);
  weights loaded(memory, values.model, false);
  saved.read(loaded, context.inline_stream());
  model writer(memory, context, loaded, values.model, values.data.sequence, false);
  activations batch(memory, values.model.layers, {1, values.data.sequence});
  writer.refresh(context.inline_stream());
  return generate(context.inline_stream(), writer, batch, prompt, values);
}

void sample(arguments& with) {
  const std::string text = sample_from(*with.source(), with.config.values, with.prompt);
  std::printf("%s%s\n", printable(with.prompt).c_str(), printable(text).c_str());
}

}  // namespace pretrain
