// velo sequence: how ranks share the attention of one sequence.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/job.hpp"
#include "tools/velo/mask_file.hpp"
#include "tools/velo/options.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const sequence_help =
    "usage: velo sequence KIND [--cp N] [--ulysses U] [--window W] --sequence S\n"
    "                     [--documents END,..] [--heads N --kv-heads G] [--head-dim D]\n"
    "                     [--kv-cache KEPT [--kv-interval I --layers L [--layer N]]]\n"
    "                     [--kv-gather] [--keys WHOSE] [--mask FILE] [--full]\n"
    "                     [--format summary|json|svg] [-o FILE]\n\n"
    "Which rows of a sequence each of N ranks holds, who multiplies which queries with which keys\n"
    "in which step, and what is sent. The plan is proven before it is shown, up to 1048576\n"
    "rows, 65536 pairs of ranks times documents, and 2097152 of these times heads.\n\n"
    "  KIND             ulysses, ring, hybrid, all_gather, adaptive or hybrid_adaptive\n"
    "  --ulysses U      hybrids: neighbors that exchange heads, in rings of N / U; hybrid is\n"
    "                   ring with 1 and ulysses with N\n"
    "  --window W       ring, hybrid: ranks of a window of a double ring\n"
    "  --kv-cache KEPT  the cache for the gradient: none, half (keys) or full (and values); of\n"
    "                   others in ring and hybrid, of each rank's own in ulysses\n"
    "  --kv-interval I  layers between two of the model's L with a cache; 0 = all have it\n"
    "  --layers L       of the model (1); the summary has the price of all\n"
    "  --layer N        whose plan is shown (0)\n"
    "  --kv-gather      ulysses, hybrids: ranks that exchange heads get all key heads\n"
    "  --keys WHOSE     the owner of the keys: own (of this layer alone), shared (later layers "
    "attend\n"
    "                   to them, too) or given (an earlier layer's: what that has kept is not "
    "sent)\n"
    "  --documents ..   ends of the documents in the sequence, the last one S\n"
    "  --heads N        query heads (32), and --kv-heads G key heads (N) of --head-dim D (128)\n"
    "  --mask FILE      S lines of S characters, 1 where a query (line) does not see a key,\n"
    "                   else 0; in place of causality\n"
    "  --full           every query sees its whole document: not causal\n"
    "  --format FORMAT  summary (rows, cells and bytes by rank and step), json (`rows`, `steps`,\n"
    "                   `cells`, `bytes`, lists by rank; `gradient` the same; adaptive kinds:\n"
    "                   `rounds`, and `rule_rounds`, which ignore the limit of 6 units a rank\n"
    "                   and round; `kv_cache`), svg\n"
    "  -o FILE          where to write it\n\n"
    "Exit codes: 0 done, 1 bad input.\n";

namespace {

constexpr std::int64_t most_proven = 1 << 20;  // rows
constexpr std::int64_t most_pairs = 1 << 16;   // products of ranks, ranks and documents
constexpr std::int64_t most_heads = 1 << 21;   // of all pairs

struct wishes {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  std::vector<std::int64_t> ends;
  std::string mask, format = "summary", output;
  std::vector<std::string> words;
};

const std::vector<std::string> cache_names = {"none", "half", "full"},
                               owner_names = {"own", "shared", "given"};

template <std::int64_t velo_sequence_desc::*field>
void set_size(wishes& to, const char* option, const std::string& word) {
  to.desc.*field = integer(option + 2, word);
}

void set_documents(wishes& to, const char* option, const std::string& words) {
  to.ends = integers(option + 2, words);
}

constexpr option<wishes> options[] = {
    {"--kv-gather", [](wishes& to, const char*, const std::string&) { to.desc.kv_gather = 1; },
     true},
    {"--kv-interval", &set_size<&velo_sequence_desc::kv_interval>},
    {"--layers", &set_size<&velo_sequence_desc::layers>},
    {"--layer", &set_size<&velo_sequence_desc::layer>},
    {"--full", [](wishes& to, const char*, const std::string&) { to.desc.causal = 0; }, true},
    {"--cp", &set_size<&velo_sequence_desc::cp>},
    {"--ulysses", &set_size<&velo_sequence_desc::ulysses>},
    {"--window", &set_size<&velo_sequence_desc::window>},
    {"--sequence", &set_size<&velo_sequence_desc::sequence>},
    {"--heads", &set_size<&velo_sequence_desc::heads>},
    {"--kv-heads", &set_size<&velo_sequence_desc::kv_heads>},
    {"--head-dim", &set_size<&velo_sequence_desc::head_dim>},
    {"--documents", &set_documents},
    {"--mask",
     [](wishes& to, const char*, const std::string& word) { set_file(to.mask, word, "--mask"); }},
    {"--kv-cache",
     [](wishes& to, const char*, const std::string& word) {
       const auto found = std::find(cache_names.begin(), cache_names.end(), word);
       if (found == cache_names.end()) throw input_error("--kv-cache wants none, half or full");
       to.desc.kv_cache = static_cast<velo_sequence_cache>(found - cache_names.begin());
     }},
    {"--keys",
     [](wishes& to, const char*, const std::string& word) {
       const auto found = std::find(owner_names.begin(), owner_names.end(), word);
       if (found == owner_names.end()) throw input_error("--keys wants own, shared or given");
       to.desc.keys = static_cast<velo_sequence_keys>(found - owner_names.begin());
     }},
    {"--format",
     [](wishes& to, const char*, const std::string& word) {
       if (word != "summary" && word != "json" && word != "svg")
         throw input_error("--format wants summary, json or svg");
       to.format = word;
     }},
    {"-o",
     [](wishes& to, const char*, const std::string& word) { set_file(to.output, word, "-o"); }}};

velo_sequence_kind kind_called(const std::string& name) {
  const std::vector<std::string> names = {"ulysses",    "ring",     "hybrid",
                                          "all_gather", "adaptive", "hybrid_adaptive"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    const std::string meant = did_you_mean(name, names);
    throw input_error("sequence " + name +
                      ": expected ulysses, ring, hybrid, all_gather, adaptive or "
                      "hybrid_adaptive" +
                      meant);
  }
  return static_cast<velo_sequence_kind>(found - names.begin());
}

std::string runs_text(const velo::sequence_plan& plan, std::int64_t rank) {
  constexpr std::int64_t shown = 6;
  std::int64_t spans[2 * shown];
  const std::int64_t count = plan.rows(rank, spans, shown);
  std::string text;
  for (std::int64_t i = 0; i < std::min(count, shown); ++i)
    text +=
        (i > 0 ? " " : "") + std::to_string(spans[2 * i]) + ":" + std::to_string(spans[2 * i + 1]);
  return count > shown ? text + " .." : text;
}

std::string rounds_text(const velo_sequence_info& info) {
  if (info.rounds == 0) return "";
  const std::string rule = std::to_string(info.rule_rounds);
  return "rounds: " + std::to_string(info.rounds) +
         (info.rounds > info.rule_rounds
              ? ", more than the " + rule + " of the rule, which breaks the limit of 6 units"
              : "; the rule without the limit of 6 units needs " + rule) +
         "\n\n";
}

std::string summary_of(const velo::sequence_plan& plan) {
  const velo_sequence_info info = plan.info();
  std::string text = rounds_text(info);
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
    const bool forward = pass == VELO_SEQUENCE_FORWARD;
    const std::int64_t steps = forward ? info.forward_steps : info.gradient_steps;
    text += std::string(forward ? "forward" : "\ngradient") + ": " + std::to_string(steps) +
            " steps\n\n";
    table rows({"rank", "rows", "cells", "cells by step", "received, bytes", "in flight, bytes"});
    for (std::int64_t r = 0; r < std::min<std::int64_t>(info.cp, 64); ++r) {
      std::int64_t cells = 0, bytes = 0, held = 0;
      std::string by_step;
      for (std::int64_t s = 0; s <= steps; ++s) {
        const velo_sequence_step step = plan.step(pass, r, s);
        cells += step.cells, bytes += step.bytes_received;
        held = std::max(held, step.bytes_in_flight);
        if (s < steps && s < 8) by_step += (s > 0 ? " " : "") + std::to_string(step.cells);
      }
      rows.add({std::to_string(r), runs_text(plan, r), std::to_string(cells),
                by_step + (steps > 8 ? " .." : ""), std::to_string(bytes), std::to_string(held)});
    }
    text += rows.str();
  }
  return text;
}

// Adds the bytes of some layers.
void add_layers(std::int64_t layers, std::int64_t bytes, std::int64_t& sum) {
  if (bytes > (std::numeric_limits<std::int64_t>::max() - sum) / std::max<std::int64_t>(1, layers))
    throw input_error("--layers: expected less than 2^63 bytes of all layers together");
  sum += layers * bytes;
}

// What all layers keep and receive in their gradients, by rank.
std::string cache_text(velo_sequence_desc desc) {
  if (desc.kv_cache == VELO_SEQUENCE_CACHE_NONE || desc.layers == 1) return "";
  if (desc.keys != VELO_SEQUENCE_KEYS_OWN) return "";  // layers differ
  desc.layer = 0;
  const velo::sequence_plan keeping = velo::sequence_plan::create(desc);
  desc.layer = desc.kv_interval > 0 ? 1 : 0;
  const velo::sequence_plan other = velo::sequence_plan::create(desc);
  const velo_sequence_info info = keeping.info();
  table rows({"rank", "kept, bytes", "received in gradients, bytes"});
  for (std::int64_t r = 0; r < std::min<std::int64_t>(info.cp, 64); ++r) {
    std::int64_t kept = 0, received = 0;
    for (const velo::sequence_plan* plan : {&keeping, &other}) {
      const std::int64_t layers = plan == &keeping ? info.kv_layers : desc.layers - info.kv_layers;
      for (std::int64_t s = 0; s <= info.gradient_steps; ++s) {
        const velo_sequence_step step = plan->step(VELO_SEQUENCE_GRADIENT, r, s);
        add_layers(layers, step.bytes_received, received);
        if (s == 0) add_layers(layers, step.bytes_kept, kept);
      }
    }
    rows.add({std::to_string(r), std::to_string(kept), std::to_string(received)});
  }
  return "\nkv cache: " + cache_names[static_cast<std::size_t>(desc.kv_cache)] + " in " +
         std::to_string(info.kv_layers) + " of " + std::to_string(desc.layers) +
         " layers, which together have\n\n" + rows.str();
}

}  // namespace

int sequence(const std::vector<std::string>& words) {
  wishes given;
  given.desc.heads = 32;
  parse_options(words, options, given);
  if (given.words.size() != 1)
    throw input_error(
        "sequence wants a kind: ulysses, ring, hybrid, all_gather, adaptive or hybrid_adaptive");
  given.desc.kind = kind_called(given.words[0]);
  if (given.desc.sequence == 0)
    throw input_error("sequence wants --sequence S, 1 or more; velo help sequence");
  given.desc.document_ends = given.ends.data();
  given.desc.document_count = static_cast<std::int64_t>(given.ends.size());
  std::vector<std::uint8_t> mask;
  if (!given.mask.empty()) {
    if (given.desc.sequence < 0 || given.desc.sequence > 65536)
      throw input_error("--sequence: expected 0 to 65536 with a mask");
    mask = mask_of(given.mask, given.desc.sequence);
    given.desc.mask = mask.data();
  }
  const velo::sequence_plan plan = velo::sequence_plan::create(given.desc);
  const std::int64_t pairs =
      given.desc.cp * given.desc.cp * std::max<std::int64_t>(1, given.desc.document_count);
  if (given.desc.sequence > most_proven || pairs > most_pairs ||
      pairs * given.desc.heads > most_heads)
    std::fprintf(stderr, "velo: not proven: too large\n");
  else
    plan.check();
  const std::string text = given.format == "json"  ? plan.write<std::string>(VELO_SEQUENCE_JSON)
                           : given.format == "svg" ? plan.write<std::string>(VELO_SEQUENCE_SVG)
                                                   : summary_of(plan) + cache_text(given.desc);
  if (given.output.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_file(given.output, text);
  return done;
}

}  // namespace command
