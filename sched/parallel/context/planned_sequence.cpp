// Checks of velo_sequence_desc, the questions about a step, and its price.
#include "sched/parallel/context/planned_sequence.hpp"

#include <algorithm>

#include "comm/operation/terms.hpp"
#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::sched {

using core::concat;
using core::fail;
using core::number;
using core::text;

namespace {

constexpr std::int64_t most_ranks = 4096, most_rows = std::int64_t{1} << 31,
                       most_tasks = std::int64_t{1} << 24, most_heads = 1 << 16,
                       most_elements = 1 << 16, most_masked = 1 << 16, most_blocks = 256,
                       most_layers = 1 << 16;

void require(bool holds, const char* field, const text& expected, std::int64_t got) {
  if (!holds) fail(VELO_ERR_ARGUMENT, text("desc.%s", field), expected, number(got));
}
text words(const char* all) {
  return text("%s", all);
}

documents read_documents(const velo_sequence_desc& desc) {
  require(desc.document_count >= 0, "document_count", words("0 or more"), desc.document_count);
  if (desc.document_ends == nullptr && desc.document_count > 0)
    fail(VELO_ERR_NULL, "desc.document_ends", "document_count ends", "NULL");
  documents all;
  if (desc.document_count == 0) {
    all.ends.push_back(desc.sequence);
    return all;
  }
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < desc.document_count; ++i) {
    const std::int64_t end = desc.document_ends[i];
    if (end < before || end > desc.sequence)
      fail(VELO_ERR_ARGUMENT, concat("desc.document_ends[", i, "]"),
           concat(before, " to ", desc.sequence), number(end));
    all.ends.push_back(before = end);
  }
  if (before != desc.sequence)
    fail(VELO_ERR_ARGUMENT, concat("desc.document_ends[", desc.document_count - 1, "]"),
         concat(desc.sequence, ", the sequence"), number(before));
  return all;
}

bool is_adaptive(const velo_sequence_desc& d) {
  return d.kind == VELO_SEQUENCE_ADAPTIVE || d.kind == VELO_SEQUENCE_HYBRID_ADAPTIVE;
}
bool has_ring(const velo_sequence_desc& d) {
  return d.kind == VELO_SEQUENCE_RING || d.kind == VELO_SEQUENCE_HYBRID;
}
bool is_hybrid(const velo_sequence_desc& d) {
  return d.kind == VELO_SEQUENCE_HYBRID || d.kind == VELO_SEQUENCE_HYBRID_ADAPTIVE;
}

// The values that a field may have, with the kind that decides them.
text for_kind(const char* expected, const velo_sequence_desc& d) {
  constexpr const char* names[] = {"ULYSSES",    "RING",     "HYBRID",
                                   "ALL_GATHER", "ADAPTIVE", "HYBRID_ADAPTIVE"};
  return text("%s; kind is %s", expected, names[d.kind]);
}

void require_ring(const velo_sequence_desc& d) {
  const bool ring = has_ring(d);
  if (is_hybrid(d))
    require(d.ulysses >= 1 && d.cp % d.ulysses == 0, "ulysses", concat("a divisor of cp, ", d.cp),
            d.ulysses);
  else
    require(d.ulysses == 1, "ulysses", for_kind("1, except for hybrids", d), d.ulysses);
  const std::int64_t around = ring ? d.cp / d.ulysses : 1;
  const text of_ring = concat("the ring, ", is_hybrid(d) ? "cp / ulysses, " : "cp, ", around);
  require(d.window >= 1 && around % d.window == 0, "window",
          ring ? concat("a divisor of ", of_ring) : for_kind("1 without a ring", d), d.window);
  require(d.window == 1 || d.window < around, "window", concat("less than ", of_ring), d.window);
}

void require_cache(const velo_sequence_desc& d) {
  require(d.kv_cache >= VELO_SEQUENCE_CACHE_NONE && d.kv_cache <= VELO_SEQUENCE_CACHE_FULL,
          "kv_cache", words("VELO_SEQUENCE_CACHE_NONE to VELO_SEQUENCE_CACHE_FULL"), d.kv_cache);
  require(has_ring(d) || d.kind == VELO_SEQUENCE_ULYSSES || d.kv_cache == VELO_SEQUENCE_CACHE_NONE,
          "kv_cache", for_kind("VELO_SEQUENCE_CACHE_NONE, except for ULYSSES, RING and HYBRID", d),
          d.kv_cache);
  require(d.layers >= 1 && d.layers <= most_layers, "layers", concat("1 to ", most_layers),
          d.layers);
  require(d.layer >= 0 && d.layer < d.layers, "layer", concat("0 to ", d.layers - 1), d.layer);
  require(d.kv_interval >= 0, "kv_interval", words("0 or more"), d.kv_interval);
  if (d.kv_interval > 0 && d.kv_cache == VELO_SEQUENCE_CACHE_NONE)
    fail(VELO_ERR_ARGUMENT, "desc.kv_cache",
         concat("half or full, which kv_interval ", d.kv_interval, " needs"), "none");
  require(d.kv_interval < d.layers, "kv_interval", concat("0 or more, below layers, ", d.layers),
          d.kv_interval);
}

void require_keys(const velo_sequence_desc& d) {
  require(d.keys >= VELO_SEQUENCE_KEYS_OWN && d.keys <= VELO_SEQUENCE_KEYS_GIVEN, "keys",
          words("VELO_SEQUENCE_KEYS_OWN to VELO_SEQUENCE_KEYS_GIVEN"), d.keys);
  require(d.reserved == 0, "reserved", words("0"), d.reserved);
}

void require_sizes(const velo_sequence_desc& d) {
  require(d.kind >= VELO_SEQUENCE_ULYSSES && d.kind <= VELO_SEQUENCE_HYBRID_ADAPTIVE, "kind",
          words("VELO_SEQUENCE_ULYSSES to VELO_SEQUENCE_HYBRID_ADAPTIVE"), d.kind);
  require(d.cp >= 1 && d.cp <= most_ranks, "cp", concat("1 to ", most_ranks), d.cp);
  require_ring(d);
  require(!is_adaptive(d) || d.cp / d.ulysses <= most_blocks, "cp",
          concat("at most ", most_blocks, " blocks of rows of an adaptive kind"), d.cp);
  require(d.sequence >= 0 && d.sequence < most_rows, "sequence", words("0 or more, below 2^31"),
          d.sequence);
  const std::int64_t exchange = d.kind == VELO_SEQUENCE_ULYSSES ? d.cp : d.ulysses;
  require(d.heads >= exchange && d.heads <= most_heads, "heads",
          concat(exchange, " to ", most_heads, ", one for each rank that exchanges heads (",
                 d.kind == VELO_SEQUENCE_ULYSSES ? "cp)" : "ulysses)"),
          d.heads);
  const std::int64_t keys = d.kv_heads == 0 ? d.heads : d.kv_heads;
  require(keys >= 1 && d.heads % keys == 0, "kv_heads", concat("a divisor of heads, ", d.heads),
          d.kv_heads);
  require(d.head_dim >= 1 && d.head_dim <= most_elements, "head_dim",
          concat("1 to ", most_elements), d.head_dim);
  require(d.element_bytes == 2 || d.element_bytes == 4, "element_bytes", words("2 or 4"),
          d.element_bytes);
  require(d.causal == 0 || d.causal == 1, "causal", words("0 or 1"), d.causal);
  require_cache(d);
  require_keys(d);
  require(d.kv_gather == 0 || (d.kv_gather == 1 && exchange > 1), "kv_gather",
          for_kind("0, or 1 where heads are exchanged", d), d.kv_gather);
  // Products fit 64 bits: cells of all heads, and bytes of float32 of the whole sequence.
  constexpr double most = 0x1p62;
  const auto rows_of_heads = static_cast<double>(d.sequence) * static_cast<double>(d.heads);
  require(rows_of_heads * static_cast<double>(d.sequence) < most &&
              rows_of_heads * static_cast<double>(d.head_dim) * 4 < most,
          "heads", words("less than 2^62 cells and bytes, with sequence and head_dim"), d.heads);
  const std::int64_t tasks = std::max<std::int64_t>(d.document_count, 1);
  require(tasks <= most_tasks / (d.cp * d.cp), "document_count",
          concat("at most ", most_tasks / (d.cp * d.cp), " with cp ", d.cp), d.document_count);
  if (d.mask == nullptr && !is_adaptive(d)) return;
  require(d.mask == nullptr || d.document_count == 0, "document_count", words("0 beside a mask"),
          d.document_count);
  require(d.sequence <= most_masked, "sequence",
          concat("at most ", most_masked, " with a mask or of an adaptive kind"), d.sequence);
}

// The mask of causality and documents.
std::vector<std::uint8_t> mask_of(const documents& all, bool causal) {
  const std::int64_t sequence = all.sequence();
  std::vector<std::uint8_t> mask(core::at(sequence * sequence), 1);
  for (std::int64_t d = 0; d < all.count(); ++d) {
    const span own = all.at(d);
    for (std::int64_t q = own.begin; q < own.end; ++q) {
      const auto row = mask.begin() + q * sequence;
      std::fill(row + own.begin, row + (causal ? q + 1 : own.end), std::uint8_t{0});
    }
  }
  return mask;
}

sequence_shape shape_of(const velo_sequence_desc& d, const std::vector<std::uint8_t>& mask) {
  return {read_documents(d),
          d.causal != 0,
          mask.empty() ? nullptr : mask.data(),
          {d.heads, d.kv_heads == 0 ? d.heads : d.kv_heads},
          d.cp};
}

std::vector<std::uint8_t> mask_of(const velo_sequence_desc& d) {
  require_sizes(d);
  if (d.mask != nullptr) return {d.mask, d.mask + d.sequence * d.sequence};
  if (!is_adaptive(d)) return {};
  return mask_of(read_documents(d), d.causal != 0);
}

// What a plan's layer keeps.
velo_sequence_cache cache_of(const velo_sequence_desc& d) {
  return d.layer % (d.kv_interval + 1) == 0 ? d.kv_cache : VELO_SEQUENCE_CACHE_NONE;
}

// The same plan by the kind's own name: a hybrid without neighbors is its ring or adaptive kind,
// and one of a single ring rank is ULYSSES.
velo_sequence_desc plain(velo_sequence_desc d) {
  if (d.kind == VELO_SEQUENCE_HYBRID_ADAPTIVE && d.ulysses == 1) d.kind = VELO_SEQUENCE_ADAPTIVE;
  if (d.kind != VELO_SEQUENCE_HYBRID) return d;
  if (d.ulysses == 1)
    d.kind = VELO_SEQUENCE_RING;
  else if (d.ulysses == d.cp)
    d.kind = VELO_SEQUENCE_ULYSSES, d.ulysses = 1;
  return d;
}

// The same for plans that are carried out in the same way.
std::uint64_t signature_of(const velo_sequence_desc& of, const sequence_shape& shape) {
  const velo_sequence_desc d = plain(of);
  std::uint64_t hash = 1;
  const auto add = [&](std::int64_t x) {
    hash = comm::mixed(hash + static_cast<std::uint64_t>(x) + 1);
  };
  for (const std::int64_t one : {std::int64_t{d.kind}, d.cp, d.ulysses, d.window, d.sequence,
                                 d.heads, shape.heads.keys, d.head_dim, std::int64_t{d.causal},
                                 std::int64_t{cache_of(d)}, d.kv_gather, std::int64_t{d.keys}})
    add(one);
  for (const std::int64_t end : shape.all.ends) add(end);
  const std::int64_t bytes = shape.mask == nullptr ? 0 : d.sequence * d.sequence;
  for (std::int64_t i = 0; i < bytes; ++i) add(shape.mask[i] != 0 ? 1 : 0);
  return hash;
}

sequence_plan plan_with_own_keys(const velo_sequence_desc& d, const sequence_shape& shape) {
  if (d.kind == VELO_SEQUENCE_ALL_GATHER) return plan_all_gather(shape);
  const bool gathers = d.kv_gather != 0;
  if (is_adaptive(d)) return plan_adaptive(shape, {d.ulysses, gathers});
  return plan_rings(
      shape, {d.kind == VELO_SEQUENCE_ULYSSES ? d.cp : d.ulysses, d.window,
              static_cast<kept_blocks>(cache_of(d)), gathers, d.keys != VELO_SEQUENCE_KEYS_OWN});
}

sequence_plan plan_of(const velo_sequence_desc& d, const sequence_shape& shape) {
  sequence_plan plan = plan_with_own_keys(d, shape);
  if (d.keys == VELO_SEQUENCE_KEYS_GIVEN) give_keys(plan);
  return plan;
}

}  // namespace

planned_sequence::planned_sequence(const velo_sequence_desc& desc)
    : head_dim_(desc.head_dim),
      element_bytes_(desc.element_bytes),
      cache_{desc.kv_cache, desc.kv_interval, desc.layers},
      keys_(desc.keys),
      mask_(mask_of(desc)),
      shape_(shape_of(desc, mask_)),
      signature_(signature_of(desc, shape_)),
      plan_(plan_of(desc, shape_)),
      forward_(index(plan_.forward)),
      gradient_(index(plan_.gradient)) {}

planned_sequence::ways planned_sequence::index(const attention_pass& of) const {
  ways all;
  all.sent.resize(core::at(ranks()));
  all.received.resize(core::at(ranks()));
  for (std::size_t i = 0; i < of.messages.size(); ++i) {
    all.sent[core::at(of.messages[i].from)].push_back(i);
    all.received[core::at(of.messages[i].to)].push_back(i);
  }
  return all;
}

const rows& planned_sequence::held(std::int64_t rank) const {
  return plan_.held[core::at(rank)];
}

std::vector<const attention_task*> planned_sequence::tasks(velo_sequence_pass which,
                                                           std::int64_t rank,
                                                           std::int64_t step) const {
  const std::vector<attention_task>& own = pass(which).tasks[core::at(rank)];
  auto at = std::lower_bound(own.begin(), own.end(), step,
                             [](const attention_task& t, auto s) { return t.step < s; });
  std::vector<const attention_task*> all;
  for (; at != own.end() && at->step == step; ++at) all.push_back(&*at);
  return all;
}

std::vector<const block_message*> planned_sequence::sent(velo_sequence_pass which,
                                                         std::int64_t rank,
                                                         std::int64_t step) const {
  std::vector<const block_message*> all;
  const ways& by = which == VELO_SEQUENCE_GRADIENT ? gradient_ : forward_;
  for (const std::size_t i : by.sent[core::at(rank)])
    if (pass(which).messages[i].step == step) all.push_back(&pass(which).messages[i]);
  return all;
}

std::vector<const block_message*> planned_sequence::received(velo_sequence_pass which,
                                                             std::int64_t rank,
                                                             std::int64_t step) const {
  std::vector<const block_message*> all;
  const ways& by = which == VELO_SEQUENCE_GRADIENT ? gradient_ : forward_;
  for (const std::size_t i : by.received[core::at(rank)])
    if (pass(which).messages[i].needed == step) all.push_back(&pass(which).messages[i]);
  return all;
}

// Parts of results are float32, as all of dk and dv are.
std::int64_t planned_sequence::bytes_of(const block_message& m) const {
  const bool parts = m.part || m.what == content::dk || m.what == content::dv;
  return size_of(m.of) * m.heads.size() *
         (head_dim_ * (parts ? 4 : element_bytes_) + 4 * m.statistics);
}

void planned_sequence::price(velo_sequence_pass which, std::int64_t rank, std::int64_t step,
                             velo_sequence_step& to) const {
  to = {};
  for (const attention_task* one : tasks(which, rank, step)) {
    to.cells += cells_of(*one, shape_) * one->heads.size();
    ++to.tasks;
  }
  for (const block_message* m : sent(which, rank, step)) to.bytes_sent += bytes_of(*m), ++to.sends;
  for (const block_message* m : received(which, rank, step))
    to.bytes_received += bytes_of(*m), ++to.receives;
  const ways& by = which == VELO_SEQUENCE_GRADIENT ? gradient_ : forward_;
  for (const std::size_t i : by.received[core::at(rank)]) {
    const block_message& m = pass(which).messages[i];
    if (m.step <= step && step < m.needed) to.bytes_in_flight += bytes_of(m);
  }
  for (const std::size_t i : forward_.received[core::at(rank)]) {
    const block_message& m = plan_.forward.messages[i];
    if (m.kept && (which == VELO_SEQUENCE_GRADIENT || m.needed <= step))
      to.bytes_kept += bytes_of(m);
  }
}

}  // namespace velo::sched
