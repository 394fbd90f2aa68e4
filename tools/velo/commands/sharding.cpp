// velo sharding: which part of which parameter each rank of a job holds.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/job.hpp"
#include "tools/velo/model_parameters.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const sharding_help =
    "usage: velo sharding CONFIG.json --tp T --cp C --ep E --dp D --pp P [--etp N] [--tp-x N]\n"
    "                     [--rank R] [--to KEY=N,..] [--json] [--svg PICTURE.svg] ..\n\n"
    "Where each parameter of a model lies among T x C x D x P ranks (1 each unless given; N is\n"
    "T). CONFIG.json is that of a Hugging Face checkpoint: llama, mistral, qwen2, qwen3, mixtral,\n"
    "glm4_moe, deepseek_v3, and pretrain's llama_cla (--kv_share), and mixtral_router,\n"
    "glm4_moe_router and deepseek_v3_router (other routers). The parts are proven to make up the\n"
    "model before anything is shown, up to 131072 ranks. Layouts need not be ones that velo's\n"
    "pretrain can run: its checks of heads, vocabulary and stages are its own.\n\n"
    "  --rank R     the parts of one rank; without it, the elements of each rank\n"
    "  --json       an object by rank, by tensor: `part`, [begin, end) of each dimension, or a\n"
    "               list of them; `sum`, the groups that its gradient is summed over, as velo\n"
    "               topology names them; `copies` of each element in the job; `range`, what the\n"
    "               rank updates with a sharded optimizer, elements of its own tensor\n"
    "  --to KEY=N,..  another layout of the same order, tp=4,pp=2, sizes left out 1: what its\n"
    "               ranks take from which rank; with --json an object by rank, by tensor, of\n"
    "               `from`, `part`, `from_at` and `at`, where a box begins in the tensors of the\n"
    "               two ranks\n"
    "  --svg FILE   tensors as rectangles, parts colored, with their ranks: of the first 64, or\n"
    "               of --rank\n"
    "  --pipeline KIND, --vpp N  the stages of each rank, as pretrain has them, of a kind of\n"
    "               velo schedule but dualpipe; one a rank, in order, unless given\n"
    "  --stage-layers LIST  the number of layers of each stage, \"2,3,3,0\", or, by rank,\n"
    "               \"[[0,1],[1,1],[1,1],[3,0]]\"; evenly unless given, the first stages one more\n"
    "  --noop-layers A,B  places without a layer, 0,7, where layers and these are dealt out to\n"
    "               the stages; these four are as pretrain's, and not of --to\n"
    "  --no-sequence-parallel  tensor ranks all see the whole sequence between products\n"
    "  --order, --tp-y, --instances  as velo topology has them\n\n"
    "Exit codes: 0 done, 1 bad input.\n";

namespace {

long long wide(std::int64_t number) {
  return static_cast<long long>(number);
}

constexpr std::int64_t most_proven = 131072, most_shown = 64;  // ranks

// A model cut for a job.
class cut_model {
 public:
  cut_model(const std::string& file, const job& asked, model_cuts cuts)
      : topology_(asked.topology()), sharding_(velo::sharding::create(topology_)) {
    cuts.job = asked.sizes();
    cuts.sequence_parallel = cuts.sequence_parallel && cuts.job.tp > 1;
    add_parameters(file, cuts, sharding_);
    if (ranks() > most_proven)
      std::fprintf(stderr, "velo: not proven: more than %lld ranks\n", wide(most_proven));
    else
      sharding_.check();
  }
  const velo::sharding& parts() const { return sharding_; }
  std::int64_t ranks() const { return velo_sharding_info(sharding_.info()).ranks; }
  std::int64_t parameters() const { return velo_sharding_info(sharding_.info()).parameters; }

 private:
  velo::topology topology_;
  velo::sharding sharding_;
};

std::string size_text(const std::int64_t* shape, std::int32_t ndim) {
  std::string text = "[";
  for (int d = 0; d < ndim; ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

// "0:2048, 0:4096"
std::string box_text(const std::int64_t* begin, const std::int64_t* end, std::int32_t ndim) {
  std::string text;
  for (int d = 0; d < ndim; ++d)
    text += (d > 0 ? ", " : "") + std::to_string(begin[d]) + ":" + std::to_string(end[d]);
  return text;
}

std::string sums_text(const velo::sharding& parts, std::int64_t p, std::int64_t rank,
                      std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i)
    text += std::string(i > 0 ? " " : "") + static_cast<const char*>(parts.sum(p, rank, i));
  return text;
}

// Elements that a rank holds and updates.
struct total {
  std::int64_t elements = 0, updated = 0;
};

total total_of(const cut_model& model, std::int64_t rank) {
  total sum;
  for (std::int64_t p = 0; p < model.parameters(); ++p) {
    const velo_sharding_part part = model.parts().part(p, rank);
    sum.elements += part.elements;
    sum.updated += part.range_end - part.range_begin;
  }
  return sum;
}

void show_rank(const cut_model& model, std::int64_t rank) {
  table rows({"tensor", "shape", "part", "sum", "copies"});
  for (std::int64_t p = 0; p < model.parameters(); ++p) {
    const velo_sharding_part part = model.parts().part(p, rank);
    for (std::int64_t i = 0; i < part.pieces; ++i) {
      const velo_sharding_piece piece = model.parts().piece(p, rank, i);
      rows.add({i == 0 ? static_cast<const char*>(model.parts().parameter_name(p)) : "",
                i == 0 ? size_text(part.shape, part.ndim) : "",
                box_text(piece.begin, piece.end, part.ndim),
                i == 0 ? sums_text(model.parts(), p, rank, part.sums) : "",
                std::to_string(piece.copies)});
    }
  }
  std::printf("%s", rows.str().c_str());
  const total sum = total_of(model, rank);
  std::printf("\nrank %lld: %lld elements, of which it updates %lld with a sharded optimizer\n",
              wide(rank), wide(sum.elements), wide(sum.updated));
}

void show_ranks(const cut_model& model) {
  table rows({"rank", "elements", "updated", "tensors"});
  for (std::int64_t rank = 0; rank < model.ranks() && rank < most_shown; ++rank) {
    const total sum = total_of(model, rank);
    std::int64_t tensors = 0;
    for (std::int64_t p = 0; p < model.parameters(); ++p)
      tensors += velo_sharding_part(model.parts().part(p, rank)).elements > 0 ? 1 : 0;
    rows.add({std::to_string(rank), std::to_string(sum.elements), std::to_string(sum.updated),
              std::to_string(tensors)});
  }
  std::printf("%lld tensors over %lld ranks; --rank R shows the parts of one\n\n%s",
              wide(model.parameters()), wide(model.ranks()), rows.str().c_str());
  if (model.ranks() > most_shown) std::printf(".. (%lld ranks)\n", wide(model.ranks()));
}

// Writes rank by rank, so that a large job is never one text.
void print_json(const cut_model& model, std::int64_t first, std::int64_t end) {
  for (std::int64_t rank = first; rank < end; ++rank) {
    std::string text = model.parts().write<std::string>(rank, VELO_SHARDING_JSON);
    if (rank > first) text.replace(0, 1, ",");
    if (rank + 1 < end) text.pop_back();
    std::fputs(text.c_str(), stdout);
  }
  std::puts("");
}

// ---- from one layout to another ----

std::vector<velo_sharding_move> moves_of(const cut_model& from, const cut_model& to,
                                         std::int64_t parameter, std::int64_t rank) {
  const std::int64_t count =
      from.parts().transfer(to.parts(), parameter, rank, VELO_SHARDING_PARTS, nullptr, 0);
  std::vector<velo_sharding_move> all(static_cast<std::size_t>(count));
  from.parts().transfer(to.parts(), parameter, rank, VELO_SHARDING_PARTS, all.data(), count);
  return all;
}

void print_list(const char* name, const std::int64_t* numbers, std::int32_t count) {
  std::printf(", \"%s\": [", name);
  for (int d = 0; d < count; ++d) std::printf("%s%lld", d > 0 ? ", " : "", wide(numbers[d]));
  std::printf("]");
}

void print_move(const velo_sharding_move& move, std::int32_t ndim) {
  std::printf("{\"from\": %lld, \"part\": [", wide(move.source));
  for (int d = 0; d < ndim; ++d)
    std::printf("%s[%lld, %lld]", d > 0 ? ", " : "", wide(move.begin[d]), wide(move.end[d]));
  std::printf("]");
  print_list("from_at", move.source_at, ndim);
  print_list("at", move.at, ndim);
  std::printf("}");
}

void print_moves(const cut_model& from, const cut_model& to, std::int64_t first, std::int64_t end) {
  for (std::int64_t rank = first; rank < end; ++rank) {
    std::printf("%s\"%lld\": {", rank == first ? "{" : ",\n ", wide(rank));
    bool any = false;
    for (std::int64_t p = 0; p < to.parameters(); ++p) {
      const std::vector<velo_sharding_move> moves = moves_of(from, to, p, rank);
      if (moves.empty()) continue;
      const velo_sharding_part part = to.parts().part(p, rank);
      std::printf("%s\n  \"%s\": [", any ? "," : "",
                  static_cast<const char*>(to.parts().parameter_name(p)));
      any = true;
      for (std::size_t i = 0; i < moves.size(); ++i) {
        if (i > 0) std::printf(", ");
        print_move(moves[i], part.ndim);
      }
      std::printf("]");
    }
    std::printf("}");
  }
  std::puts("}");
}

std::int64_t elements_of(const velo_sharding_move& move, std::int32_t ndim) {
  std::int64_t elements = 1;
  for (int d = 0; d < ndim; ++d) elements *= move.end[d] - move.begin[d];
  return elements;
}

void show_moves(const cut_model& from, const cut_model& to, std::int64_t first, std::int64_t end) {
  table rows({"rank", "elements", "its own", "from others", "boxes"});
  for (std::int64_t rank = first; rank < std::min(end, first + most_shown); ++rank) {
    std::int64_t own = 0, others = 0, boxes = 0;
    for (std::int64_t p = 0; p < to.parameters(); ++p) {
      const velo_sharding_part part = to.parts().part(p, rank);
      for (const velo_sharding_move& move : moves_of(from, to, p, rank)) {
        (move.source == rank ? own : others) += elements_of(move, part.ndim);
        ++boxes;
      }
    }
    rows.add({std::to_string(rank), std::to_string(own + others), std::to_string(own),
              std::to_string(others), std::to_string(boxes)});
  }
  std::printf("%s", rows.str().c_str());
  if (end - first > most_shown) std::printf(".. (%lld ranks)\n", wide(end));
}

// "tp=4,pp=2"
void read_sizes(const std::string& words, job& to) {
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, end - at);
    const std::size_t equals = word.find('=');
    static const char* const keys[] = {"tp", "cp", "ep", "dp", "pp", "etp", "gtp", "egtp", "tp-x"};
    bool known = false;
    for (const char* key : keys) known = known || word.substr(0, equals) == key;
    if (equals == std::string::npos || !known)
      throw input_error(
          "--to: expected KEY=N,.. with the keys tp, cp, ep, dp, pp, etp, gtp, egtp, "
          "tp-x, got \"" +
          word + "\"");
    to.set(word.substr(0, equals), word.substr(equals + 1));
    at = end + 1;
  }
}

velo_schedule_kind kind_named(const std::string& word) {
  const char* name = nullptr;
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE;
       velo_schedule_kind_name(kind, &name) == VELO_OK; ++kind)
    if (word == name && word != "auto" && word != "dualpipe") return kind;
  throw input_error(
      "--pipeline: expected a kind that velo help schedule lists, other than auto and than "
      "dualpipe, which has each layer on two ranks of pp, got \"" +
      word.substr(0, 80) + "\"");
}

// The rank that has each stage in a schedule.
std::vector<std::int64_t> ranks_of_stages(const arguments& given, std::int64_t ranks) {
  std::vector<std::int64_t> all;
  constexpr std::int64_t most_stages = 65536;
  if (ranks > most_stages)
    throw input_error("--pp: expected at most 65536 stages, got " + std::to_string(ranks));
  if (given.pipeline.empty() && given.vpp == 0) {
    for (std::int64_t stage = 0; stage < ranks; ++stage) all.push_back(stage);
    return all;
  }
  constexpr std::int64_t most = 1024;
  if (ranks < 2 || ranks > most)
    throw input_error(std::string(given.pipeline.empty() ? "--vpp" : "--pipeline") +
                      ": expected --pp from 2 to 1024, got " + std::to_string(ranks));
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind_named(given.pipeline.empty() ? "1f1b" : given.pipeline);
  desc.ranks = static_cast<std::int32_t>(ranks);
  desc.microbatches = 2 * desc.ranks;  // every kind takes these; they do not move a stage
  desc.chunks = static_cast<std::int32_t>(given.vpp);
  const velo::schedule order = velo::schedule::create(desc);
  const velo_schedule_info info = order.info();
  for (int stage = 0; stage < info.stages; ++stage) all.push_back(order.stage(stage).rank);
  return all;
}

model_cuts cuts_of(const arguments& given, std::int64_t ranks) {
  model_cuts cuts = {};
  cuts.sequence_parallel = given.sequence_parallel;
  cuts.empty_places = given.noop_layers;
  if (!given.stage_layers.empty()) cuts.stage_layers = stage_list::read(given.stage_layers);
  cuts.rank_of_stage = ranks_of_stages(given, ranks);
  return cuts;
}

void require_rank(std::int64_t rank, std::int64_t ranks) {
  if (rank >= ranks)
    throw input_error("rank: expected 0 to " + std::to_string(ranks - 1) + ", got " +
                      std::to_string(rank));
}

}  // namespace

int sharding(const arguments& given) {
  if (given.words.size() != 1)
    throw input_error("sharding wants one CONFIG.json, got " + std::to_string(given.words.size()) +
                      " words; velo help sharding");
  const job asked(given);
  const cut_model model(given.words[0], asked, cuts_of(given, asked.sizes().pp));
  const bool one = asked.rank() >= 0;
  if (!given.has_other_layout) require_rank(asked.rank(), model.ranks());
  if (!given.picture.empty())
    write_file(given.picture, model.parts().write<std::string>(
                                  given.has_other_layout ? -1 : asked.rank(), VELO_SHARDING_SVG));
  if (!given.has_other_layout) {
    if (given.json)
      print_json(model, one ? asked.rank() : 0, one ? asked.rank() + 1 : model.ranks());
    else
      one ? show_rank(model, asked.rank()) : show_ranks(model);
    return done;
  }
  job other;
  for (const auto& [option, word] : given.layout)
    if (option == "order") other.set(option, word);
  read_sizes(given.other_layout, other);
  arguments evenly;
  evenly.sequence_parallel = given.sequence_parallel;
  const cut_model to(given.words[0], other, cuts_of(evenly, other.sizes().pp));
  require_rank(asked.rank(), to.ranks());
  const std::int64_t first = one ? asked.rank() : 0, end = one ? first + 1 : to.ranks();
  given.json ? print_moves(model, to, first, end) : show_moves(model, to, first, end);
  return done;
}

}  // namespace command
