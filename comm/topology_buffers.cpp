// MindSpeed's rules for group buffers, with two of its slips mended: attention's keys and values
// count by their heads (there by whether heads are grouped at all), and the factor for experts that
// receive more than others enters every size of theirs (there it only switched some of them on).
#include "comm/topology_buffers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/failure.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

// clang-format off
constexpr std::string_view keys[] = {
    "dp", "dp_cp", "cp", "mp", "mp_exp", "tp", "pp", "embd", "tp_dp_cp", "tp_dp", "tp_cp", "tp_exp",
    "exp", "dp_modulo_exp", "pp_new_stream", "cp2", "cp_ulysses", "cp_ring", "cp_ring_intra",
    "cp_ring_intra_overlap", "nd1_dim1", "ag_x_sd_rcv_overlap", "nd1_dim2", "ag_y_sd_rcv_overlap",
    "nd2_dim1", "nd2_dim2"};
// clang-format on

constexpr std::int64_t small = 10;  // for a few numbers: norms, losses, counts
constexpr std::int64_t largest = std::int64_t{1} << 24;

std::string_view trimmed(std::string_view all) {
  while (!all.empty() && all.front() == ' ') all.remove_prefix(1);
  while (!all.empty() && all.back() == ' ') all.remove_suffix(1);
  return all;
}

// Two bytes an element, in whole MiB of elements.
std::int64_t mebibytes(long double elements) {
  const long double count = 2 * std::ceil(elements / (1 << 20));
  return static_cast<std::int64_t>(std::min(count, static_cast<long double>(largest)));
}

text quoted(std::string_view part) {
  return text("\"%.*s\"", static_cast<int>(std::min<std::size_t>(part.size(), 80)), part.data());
}

}  // namespace

buffer_sizes::buffer_sizes(const velo_topology_desc& desc) : buffer_sizes() {
  if (desc.traffic != nullptr) adapt(desc);
  if (desc.buffers != nullptr) read(desc.buffers);
}

std::uint64_t buffer_sizes::of(std::string_view key) const {
  const auto* found = std::find(std::begin(keys), std::end(keys), key);
  const std::int64_t size = found == std::end(keys) ? usual : sizes_[found - std::begin(keys)];
  return static_cast<std::uint64_t>(size) << 20;
}

void buffer_sizes::set(std::string_view key, std::int64_t mebibytes) {
  sizes_[std::find(std::begin(keys), std::end(keys), key) - std::begin(keys)] = mebibytes;
}

void buffer_sizes::adapt(const velo_topology_desc& desc) {
  const velo_topology_traffic& t = *desc.traffic;
  const auto cp = static_cast<long double>(desc.cp), tp = static_cast<long double>(desc.tp);
  const long double elements = static_cast<long double>(t.sequence) *
                               static_cast<long double>(t.batch) *
                               static_cast<long double>(t.hidden) / cp;
  const bool sequence_parallel = t.sequence_parallel != 0;
  const std::int64_t layer = mebibytes(elements) * (sequence_parallel ? 1 : 2);
  const std::int64_t stage = mebibytes(sequence_parallel ? elements / tp : elements);
  set("tp", layer);
  set("pp", stage);
  set("pp_new_stream", stage);
  for (const char* key : {"mp", "mp_exp", "tp_cp"}) set(key, small);
  adapt_context(desc);
  if (t.dispatch == VELO_TOPOLOGY_DISPATCH_NONE) return;

  // Tokens sent to experts, as far as anyone says how uneven they are.
  const bool known = t.ep_factor > 0;
  const long double factor = t.ep_factor;
  const std::int64_t sent =
      known ? mebibytes(factor * elements / tp * static_cast<long double>(t.top_k)) : usual;
  set("exp", sent);
  if (t.dispatch == VELO_TOPOLOGY_DISPATCH_ALL_GATHER)
    set("tp_exp", known ? mebibytes(factor * elements * static_cast<long double>(desc.ep)) : usual);
  if (t.dispatch != VELO_TOPOLOGY_DISPATCH_ALL_TO_ALL_SEQUENCE) return;
  set("tp", std::max(layer, sent));
  if (t.tp_extends_ep != 0) set("tp_exp", sent);
}

void buffer_sizes::adapt_context(const velo_topology_desc& desc) {
  const velo_topology_traffic& t = *desc.traffic;
  const auto tp = static_cast<long double>(desc.tp),
             ulysses = static_cast<long double>(desc.cp_ulysses);
  const long double rows = static_cast<long double>(t.sequence) * static_cast<long double>(t.batch);
  const bool hybrid = desc.cp_ulysses > 1;
  const auto ring = static_cast<long double>(desc.cp) / ulysses;
  const long double heads = static_cast<long double>(t.hidden) / static_cast<long double>(t.heads) *
                            static_cast<long double>(t.kv_heads);
  if (hybrid) {
    set("cp_ulysses", mebibytes(rows * static_cast<long double>(t.hidden) / ulysses / tp));
    set("cp", small);
  } else if (t.cp_ring == 0) {
    set("cp", mebibytes(rows * static_cast<long double>(t.hidden) / ring / tp));
    return;
  }
  // Keys and values of a block; both in one group, or one in each of two.
  const std::int64_t block = mebibytes(rows * heads / ring / tp);
  const bool two = t.cp_overlap != 0;
  set(hybrid ? "cp_ring" : "cp", two ? block : 2 * block);
  if (two) set("cp2", block);
  if (desc.cp_window == 1) return;
  set("cp_ring_intra", two ? block : 2 * block);
  if (two) set("cp_ring_intra_overlap", block);
}

void buffer_sizes::read(const char* given) {
  std::string_view rest = given;
  for (bool more = true; more;) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view part = rest.substr(0, end);
    more = end < rest.size();
    rest.remove_prefix(std::min(end + 1, rest.size()));

    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos)
      fail(VELO_ERR_ARGUMENT, "desc.buffers", "key:MiB and semicolons, as in dp:200;tp:300",
           quoted(part));
    const std::string_view key = trimmed(part.substr(0, colon));
    const std::string_view size = trimmed(part.substr(colon + 1));
    if (std::find(std::begin(keys), std::end(keys), key) == std::end(keys))
      fail(VELO_ERR_ARGUMENT, "desc.buffers", "a key such as dp, dp_cp, tp_exp, cp_ring",
           quoted(key));
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    if (error != std::errc() || stop != size.data() + size.size() || value < 1 || value > largest)
      fail(VELO_ERR_ARGUMENT, "desc.buffers",
           core::text("1 to %lld MiB for %.*s", static_cast<long long>(largest),
                      static_cast<int>(key.size()), key.data()),
           quoted(size));
    set(key, value);
  }
}

}  // namespace velo::comm
