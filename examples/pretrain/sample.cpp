// Sampling from a checkpoint without training.
#include <cstdio>

#include "context.hpp"
#include "generate.hpp"
#include "run.hpp"

namespace pretrain {

void sample(arguments& with) {
  const settings& values = with.config.values;
  run_memory memory;
  const velo::context context = make_context(values.run, memory);
  const weights loaded(memory, values.model, false);
  with.checkpoint->read_weights(loaded.files());
  model writer(memory, context, loaded, values.model, values.data.sequence, false);
  activations batch(memory, values.model, {1, values.data.sequence});
  writer.refresh(context.inline_stream());
  const std::string text =
      generate(context.inline_stream(), writer, batch, with.prompt, values.run);
  std::printf("%s%s\n", printable(with.prompt).c_str(), printable(text).c_str());
}

}  // namespace pretrain
