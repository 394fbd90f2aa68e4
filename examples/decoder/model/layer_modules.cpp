// Reads a list of names.
#include "examples/decoder/model/layer_modules.hpp"

#include <sstream>
#include <utility>

namespace decoder {

std::optional<layer_modules> modules_in(const std::string& list) {
  constexpr std::pair<const char*, layer_modules::part> names[] = {
      {"input_norm", layer_modules::input_norm},
      {"self_attention", layer_modules::self_attention},
      {"post_attention_norm", layer_modules::post_attention_norm},
      {"mlp", layer_modules::mlp}};
  if (list.empty() || list.back() == ',') return std::nullopt;
  unsigned bits = 0;
  std::istringstream from(list);
  for (std::string each; std::getline(from, each, ',');) {
    unsigned found = 0;
    for (const auto& [name, bit] : names)
      if (each == name) found = bit;
    if (found == 0 || (bits & found) != 0) return std::nullopt;
    bits |= found;
  }
  return layer_modules(bits);
}

layer_modules swapped_modules(const memory_settings& memory) {
  return memory.swap_activations == "off" ? layer_modules::none()
                                          : *modules_in(memory.swap_modules);
}

}  // namespace decoder
