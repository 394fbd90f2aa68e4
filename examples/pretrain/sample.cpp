// Sampling from a checkpoint without training.
#include <cstdio>

#include "context.hpp"
#include "generate.hpp"
#include "run.hpp"

namespace pretrain {

void sample(arguments& with) {
  const settings& values = with.config.values;
  const velo::context context = make_context(values.run);
  const weights loaded(context, values.model, false);
  with.checkpoint->read_weights(loaded.files());
  model writer(context, loaded, values.model, {1, values.data.sequence}, false);
  writer.refresh(context.inline_stream());
  const std::string text =
      generate(context.inline_stream(), writer, values.data.sequence, with.prompt, values.run);
  std::printf("%s%s\n", printable(with.prompt).c_str(), printable(text).c_str());
}

}  // namespace pretrain
