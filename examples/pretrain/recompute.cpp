// The kinds of the settings, by layer.
#include "recompute.hpp"

#include <algorithm>

namespace pretrain {

std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers) {
  const std::string& kind = memory.recompute;
  const std::int64_t asked = memory.recompute_layers;
  std::vector<layer_recompute> all(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    layer_recompute& layer = all[static_cast<std::size_t>(i)];
    const bool among = asked == 0 || i < asked;
    const std::int64_t group = kind == "uniform" ? std::max<std::int64_t>(asked, 1) : 1;
    layer.whole = kind == "full" || kind == "uniform" || (kind == "block" && among);
    layer.attention = kind == "selective";
    layer.activation = kind == "activation" && among;
    layer.norms = kind == "norm" && among;
    layer.first = i / group * group;
  }
  return all;
}

}  // namespace pretrain
