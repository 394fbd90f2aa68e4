// Windows are kept by the room that they have left.
#include "examples/decoder/data/packing.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace decoder {

window packing::at(std::int64_t number) const {
  const auto i = static_cast<std::size_t>(number);
  const std::size_t begin = i == 0 ? 0 : ends[i - 1];
  return {&pieces[begin], ends[i] - begin};
}

std::int64_t packing::rows(std::int64_t number) const {
  const window of = at(number);
  return std::accumulate(of.pieces, of.pieces + of.count, std::int64_t{0},
                         [](std::int64_t sum, const piece& each) { return sum + each.rows(); });
}

void cut_document(std::string_view text, std::int64_t rows, std::vector<piece>& into) {
  const auto window = static_cast<std::size_t>(rows);
  while (text.size() + 1 > window) {
    const std::size_t taken = std::min(window, text.size() - 1);  // the last piece has a byte
    into.push_back({text.substr(0, taken)});
    text.remove_prefix(taken);
  }
  into.push_back({text, 0, true});
}

packing pack(const std::vector<piece>& pieces, std::int64_t rows) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pieces[a].rows() > pieces[b].rows();
  });
  std::vector<std::vector<std::size_t>> held;
  std::set<std::pair<std::int64_t, std::size_t>> rooms;  // and their windows
  for (const std::size_t i : order) {
    auto fit = rooms.lower_bound({pieces[i].rows(), 0});
    if (fit == rooms.end()) {
      fit = rooms.emplace(rows, held.size()).first;
      held.emplace_back();
    }
    const auto [room, at] = *fit;
    rooms.erase(fit);
    held[at].push_back(i);
    rooms.emplace(room - pieces[i].rows(), at);
  }
  packing made;
  for (const auto& window : held) {
    for (const std::size_t i : window) made.pieces.push_back(pieces[i]);
    made.ends.push_back(made.pieces.size());
  }
  return made;
}

}  // namespace decoder
