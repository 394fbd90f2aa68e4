// The memory of each rank by purpose is what its part of the model needs: parameters, gradients and
// optimizer by the bytes of a parameter, activations by the tensors that a layer keeps, and in
// stages by the micro-batches that the order holds at a time.
#include <catch2/catch.hpp>
#include <functional>

#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

namespace {

using decoder::settings;

settings some_model(const char* dtype) {
  settings s = small_settings(dtype);
  s.model.hidden = 192, s.model.heads = 12, s.model.kv_heads = 6, s.model.inner = 500;
  s.model.layers = 4, s.model.vocab = 512;
  s.data.sequence = 120, s.data.batch = 4, s.data.accumulation = 2;
  s.schedule.steps = 2;
  s.run.threads = 1;
  s.run.transport = "local";
  return s;
}

// Parts of a rank, in elements.
struct share {
  double parameters, updated;  // updated: with a sharded optimizer its part
  double rows, tokens;         // of a micro-batch: of the residual stream, between matrices
  double heads, kv_heads, inner, vocab, hidden;
  double own_rows, held;  // of a model with experts: rows that it routes, and its experts
  double layers;
  bool begins, ends;     // whether it has the embedding, and the head
  double micro_batches;  // held at a time
};

double part(std::int64_t all, std::int64_t index, std::int64_t of) {
  const std::int64_t least = all / of, more = index < all % of ? 1 : 0;
  return static_cast<double>(least + more);
}

double layers_with_keys(const decoder::model_settings& m) {
  return static_cast<double>(m.kv_share == 0 ? m.layers : m.layers - m.layers / m.kv_share);
}

// Stages are even, and in the order of 1f1b: the first of P holds P micro-batches.
share share_of(const settings& s, int rank) {
  const auto& [m, d, o, sch, mem, p, r] = s;
  const std::int64_t x_ranks = p.in_two() ? p.tp_x : p.tp, y_ranks = p.tp / x_ranks;
  const std::int64_t x = rank % x_ranks, y = rank % p.tp / x_ranks;
  const std::int64_t copies = r.ranks / p.ranks_of_copy();
  const auto size = [](std::int64_t x) { return static_cast<double>(x); };
  share one{};
  if (x_ranks > m.kv_heads) {  // some have the same head of keys
    one.kv_heads = 1;
    one.heads = size(m.heads / x_ranks);
  } else {
    one.kv_heads = part(m.kv_heads, x, x_ranks);
    one.heads = one.kv_heads * size(m.heads / m.kv_heads);
  }
  one.inner = part(m.inner, x, x_ranks);
  one.vocab = part(m.vocab, x, x_ranks);
  one.hidden = part(m.hidden, y, y_ranks);
  const std::int64_t stage = rank / (r.ranks / p.pp);
  one.layers = size(m.layers / p.pp);
  one.begins = stage == 0, one.ends = stage + 1 == p.pp;
  one.micro_batches = size(p.pp - stage);
  if (m.has_experts()) one.inner = 0, one.held = size(m.experts / p.ep);
  const double hidden = one.hidden, width = size(m.head_dim());
  const double layer = hidden * (2 * one.heads * width + 3 * one.inner + 2);
  const double keys = hidden * 2 * one.kv_heads * width;
  const double table = hidden * one.vocab;
  const bool has_one_table = m.tied && p.pp == 1;
  const double experts = one.layers * one.held * 3 * size(m.expert_width()) * hidden,
               routers = one.layers * size(m.experts) * hidden;
  one.parameters = experts + routers + one.layers * layer +
                   layers_with_keys(m) / size(p.pp) * keys + (one.begins ? table : 0) +
                   (one.ends ? hidden + (has_one_table ? 0 : table) : 0);
  one.updated = one.parameters;
  // The ranks of a stage that have the same experts share the states of these.
  if (r.zero)
    one.updated =
        (one.parameters - experts) / size(copies * p.cp) + experts / size(r.ranks / p.pp / p.ep);
  const double all = size(d.batch / copies * d.sequence / p.cp);
  one.tokens = all / size(y_ranks);
  one.rows = p.sequence_parallel || p.in_two() ? all / size(x_ranks) : all;
  one.own_rows = all / size(x_ranks);
  return one;
}

// The tensors that expert_activations.hpp lists, of all layers of a micro-batch; rows: those of the
// rank's experts.
double expert_activations_of(const settings& s, const share& one, double rows) {
  if (!s.model.has_experts()) return 0;
  const auto experts = static_cast<double>(s.model.experts),
             choices = static_cast<double>(s.model.experts_per_token),
             width = static_cast<double>(s.model.expert_width());
  const double element = s.model.dtype == "f32" ? 4 : 2;
  const double numbers_of_choice = s.parallel.ep > 1 ? 2 : 3;  // weight, expert, and place
  const double router =
      one.own_rows * (experts * element + numbers_of_choice * choices * 4) + 8 * experts;
  return one.layers * router + rows * (3 * width + 2 * one.hidden) * element;
}

// The tensors that activations.hpp lists, at the end of the forward pass.
double activations_of(const settings& s, const share& one, double kept, double expert_rows) {
  const double element = s.model.dtype == "f32" ? 4 : 2, hidden = one.hidden;
  const double width = static_cast<double>(s.model.head_dim());
  const double stream = 4 * hidden * element + 2 * 4;
  const double between = (2 * one.heads * width + 3 * one.inner) * element;
  const double keys = 2 * one.kv_heads * width * element;
  const double statistics = 2 * one.heads * 4;
  const double layer = one.rows * stream + one.tokens * (between + statistics);
  const double head =
      one.ends ? one.rows * (2 * hidden * element + 4) + one.tokens * (one.vocab * element + 4) : 0;
  const double share_of_layers = one.layers / static_cast<double>(s.model.layers);
  return one.micro_batches *
         (one.layers * layer + kept * element + head + expert_activations_of(s, one, expert_rows) +
          share_of_layers * layers_with_keys(s.model) * one.tokens * keys);
}

// Cosines and sines of this rank's rows, which lie beside the weights.
double angles_of(const settings& s) {
  const std::int64_t cut = s.data.has_documents() ? 1 : s.parallel.attention_ranks();
  const std::int64_t rows = s.data.sequence / cut;
  return static_cast<double>(2 * 4 * rows * s.model.head_dim());
}

struct measured {
  velo_pool_stats pool;
  double activations;
  double planned;      // what the plans of all layers keep of a micro-batch, in elements
  double expert_rows;  // of a micro-batch, in all layers
};

// Rows that tokens gave to a rank's experts; where these are all experts, each token's choices.
double expert_rows_of(const settings& s, const share& of, decoder::trainer& one) {
  if (!s.model.has_experts()) return 0;
  if (s.parallel.ep == 1)
    return of.layers * of.own_rows * static_cast<double>(s.model.experts_per_token);
  double rows = 0;
  for (const decoder::layer_activations& each : one.activations().layers)
    rows += static_cast<double>(each.expert.rows);
  return rows;
}

// Elements that attention of a layer keeps of other ranks, of a row of the sequence and a number of
// a head, by the formulas of context parallelism: gathered keys and values are exchanged again.
// In a ring of c steps the block of the last step stays; a full cache keeps those of all steps but
// the last but one, or this one, too, if another layer takes the keys. Where heads are exchanged,
// queries, outputs, keys and values of the rank's heads stay, of the whole sequence.
double kept_of_row(const settings& s, const share& one, int rank, bool takes_keys) {
  const auto& p = s.parallel;
  const std::int64_t c = p.attention_ranks();
  if (c == 1 || p.cp_algorithm == "all_gather") return 0;
  const auto heads = static_cast<std::int64_t>(one.heads);
  if (p.cp_algorithm == "ring") {
    const double blocks = takes_keys                ? 0
                          : p.cp_kv_cache == "none" ? 1
                          : s.model.kv_share > 0    ? static_cast<double>(c - 1)
                                                    : static_cast<double>(c - 2);
    return 2 * blocks * one.kv_heads / static_cast<double>(c);
  }
  REQUIRE(p.cp_algorithm == "ulysses");
  const std::int64_t place = rank / p.tp % p.cp, each = s.model.heads / s.model.kv_heads;
  std::int64_t begin = 0;
  for (std::int64_t other = 0; other < place; ++other)
    begin += static_cast<std::int64_t>(part(heads, other, c));
  const double mine = part(heads, place, c);
  const std::int64_t end = begin + static_cast<std::int64_t>(mine);
  const std::int64_t keys = (end - 1) / each - begin / each + 1;
  return 2 * mine + (takes_keys ? 0 : 2 * static_cast<double>(keys));
}

// The same of all layers of a rank and all rows of a micro-batch.
double kept_by(const settings& s, const share& one, int rank) {
  const double owners = layers_with_keys(s.model) / static_cast<double>(s.parallel.pp);
  const std::int64_t copies = s.run.ranks / s.parallel.ranks_of_copy();
  const std::int64_t windows = s.data.batch / copies,
                     numbers = windows * s.data.sequence * s.model.head_dim();
  return static_cast<double>(numbers) * (owners * kept_of_row(s, one, rank, false) +
                                         (one.layers - owners) * kept_of_row(s, one, rank, true));
}

// The plans' own number, for windows or for the documents of the last micro-batch.
double planned_by(const settings& s, const decoder::member& rank, decoder::trainer& one) {
  if (s.parallel.attention_ranks() == 1) return 0;
  const decoder::context_parallel context(rank, s, one.weights().layout().widths);
  const bool packs = s.data.has_documents();
  const decoder::sequence_share& of =
      packs ? one.activations().documents->share : context.of_window();
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < s.model.layers / s.parallel.pp; ++i)
    kept += of.of(context.keys_of(static_cast<std::size_t>(i))).saves.kept;
  return static_cast<double>((packs ? 1 : s.data.batch / rank.copies()) * kept);
}

// Between a forward and a backward pass, where counts of what is live are exact with any threads;
// with stages at the peak of a step.
std::vector<measured> measured_on(const settings& s) {
  const std::string whole = some_text(60000);
  const decoder::corpus text =
      s.data.has_documents()
          ? decoder::split_documents(whole, decoder::line_ends(whole, {whole.size()}), 1 << 20)
          : decoder::split_text(whole, 1 << 20);
  std::vector<measured> all(static_cast<std::size_t>(s.run.ranks));
  decoder::on_all_ranks(s, {}, [&](decoder::member& rank) {
    decoder::split(rank, s);
    decoder::trainer one(rank, s, text);
    one.start();
    one.step();
    if (s.parallel.pp == 1) {
      one.model().forward(rank.stream(), one.activations(), s.data.batch / rank.copies());
      one.model().loss(rank.stream(), one.activations(), velo::reduction::mean);
    }
    const velo_pool_stats now = rank.memory().stats();
    const std::uint64_t* const from = s.parallel.pp == 1 ? now.purpose_live : now.purpose_peak;
    all[static_cast<std::size_t>(rank.rank())] = {
        now, static_cast<double>(from[VELO_PURPOSE_ACTIVATION]), planned_by(s, rank, one),
        expert_rows_of(s, share_of(s, rank.rank()), one)};
    return 0;
  });
  return all;
}

void with_experts(settings& s) {
  s.model.experts = 4, s.model.experts_per_token = 2, s.model.expert_inner = 250;
}

struct layout {
  const char* name;
  const char* dtype;
  std::int64_t ranks;
  std::function<void(settings&)> set;
};

}  // namespace

TEST_CASE("each rank has the memory of its part of a model") {
  const layout layouts[] = {
      {"a whole model", "f32", 1, [](settings&) {}},
      {"two copies that share the optimizer", "bf16", 2, [](settings& s) { s.run.zero = true; }},
      {"tp 2", "f32", 2, [](settings& s) { s.parallel.tp = 2; }},
      {"tp 4 with rows cut, uneven heads", "bf16", 4,
       [](settings& s) { s.parallel.tp = 4, s.parallel.sequence_parallel = true; }},
      {"tp 4, two ranks to a head of keys", "f32", 4,
       [](settings& s) {
         s.model.kv_heads = 2;
         s.parallel.tp = 4;
       }},
      {"cp 2 by all_gather", "f32", 2,
       [](settings& s) { s.parallel.cp = 2, s.parallel.cp_algorithm = "all_gather"; }},
      {"cp 3 by ulysses that shares the optimizer", "bf16", 3,
       [](settings& s) {
         s.parallel.cp = 3, s.parallel.cp_algorithm = "ulysses";
         s.run.zero = true;
       }},
      {"tp 2 with rows cut, cp 2, two copies that share the optimizer", "f32", 8,
       [](settings& s) {
         s.parallel.tp = s.parallel.cp = 2, s.parallel.sequence_parallel = true;
         s.parallel.cp_algorithm = "ulysses";
         s.run.zero = true;
       }},
      {"shared keys, cp 4 that keeps keys and values", "f32", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.cp = 4, s.parallel.cp_kv_cache = "full";
       }},
      {"shared keys, tp 2, cp 2 by ulysses, that share the optimizer", "bf16", 4,
       [](settings& s) {
         s.model.kv_share = 2;
         s.parallel.tp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.run.zero = true;
       }},
      {"tp 3 with rows cut, two copies", "bf16", 6,
       [](settings& s) { s.parallel.tp = 3, s.parallel.sequence_parallel = true; }},
      {"tp 4 by 2, uneven heads", "bf16", 8,
       [](settings& s) { s.parallel.tp = 8, s.parallel.tp_x = 4; }},
      {"tp 2 by 2, cp 2 that shares the optimizer", "f32", 8,
       [](settings& s) {
         s.parallel.tp = 4, s.parallel.tp_x = s.parallel.cp = 2;
         s.run.zero = true;
       }},
      {"tied, tp 2 with rows cut, two copies", "bf16", 4,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.tp = 2, s.parallel.sequence_parallel = true;
       }},
      {"two stages", "f32", 2, [](settings& s) { s.parallel.pp = 2; }},
      {"four stages, tied, tp 2 with rows cut", "bf16", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = 4, s.parallel.tp = 2, s.parallel.sequence_parallel = true;
       }},
      {"two stages, tp 2, cp 2", "f32", 8,
       [](settings& s) { s.parallel.pp = s.parallel.tp = s.parallel.cp = 2; }},
      {"two stages, tied, cp 2 by ulysses, two copies that share the optimizer", "bf16", 8,
       [](settings& s) {
         s.model.tied = true;
         s.parallel.pp = s.parallel.cp = 2, s.parallel.cp_algorithm = "ulysses";
         s.run.zero = true;
       }},
      {"documents, tp 2, two copies", "f32", 4,
       [](settings& s) { s.data.documents = "lines", s.parallel.tp = 2; }},
      {"documents, tied, cp 2 by ulysses, tp 2 with rows cut", "bf16", 4,
       [](settings& s) {
         s.data.documents = "lines", s.model.tied = true;
         s.parallel.cp = s.parallel.tp = 2, s.parallel.cp_algorithm = "ulysses";
         s.parallel.sequence_parallel = true;
       }},
      {"documents, two stages, tp 2", "f32", 4,
       [](settings& s) { s.data.documents = "lines", s.parallel.pp = s.parallel.tp = 2; }},
      {"experts", "f32", 1, with_experts},
      {"experts, two copies that share the optimizer", "bf16", 2,
       [](settings& s) {
         with_experts(s);
         s.run.zero = true;
       }},
      {"ep 2 over copies", "f32", 2,
       [](settings& s) {
         with_experts(s);
         s.parallel.ep = 2;
       }},
      {"ep 2 in four copies that share the optimizer", "bf16", 4,
       [](settings& s) {
         with_experts(s);
         s.parallel.ep = 2, s.run.zero = true;
       }},
      {"ep 2 over tp 2 with all rows", "bf16", 2,
       [](settings& s) {
         with_experts(s);
         s.parallel.tp = s.parallel.ep = 2;
       }},
      {"ep 4 over tp 2 with rows cut and cp 2 by ulysses", "f32", 4,
       [](settings& s) {
         with_experts(s);
         s.parallel.tp = s.parallel.cp = 2, s.parallel.ep = 4;
         s.parallel.sequence_parallel = true, s.parallel.cp_algorithm = "ulysses";
       }},
      {"experts, two stages, tp 2 with rows cut", "bf16", 4,
       [](settings& s) {
         with_experts(s);
         s.parallel.pp = s.parallel.tp = 2, s.parallel.sequence_parallel = true;
       }},
  };
  for (const layout& each : layouts) {
    settings s = some_model(each.dtype);
    each.set(s);
    if (s.parallel.pp > 1) s.model.layers = 8;  // tensors between stages are few beside theirs
    s.data.accumulation = s.parallel.pp;
    s.run.ranks = each.ranks;
    const std::vector<measured> all = measured_on(s);
    for (int rank = 0; rank < each.ranks; ++rank) {
      INFO(each.name << ", rank " << rank);
      const share one = share_of(s, rank);
      const measured& now = all[static_cast<std::size_t>(rank)];
      const auto live = [&](velo_purpose of) {
        return static_cast<double>(now.pool.purpose_live[of]);
      };
      const bool narrow = s.model.dtype == "bf16";
      CHECK(live(VELO_PURPOSE_PARAMETER) ==
            Approx((narrow ? 2 : 4) * one.parameters + angles_of(s)).epsilon(0.02));
      CHECK(live(VELO_PURPOSE_GRADIENT) == Approx(4 * one.parameters).epsilon(0.02));
      CHECK(live(VELO_PURPOSE_OPTIMIZER) == Approx((narrow ? 12 : 8) * one.updated).epsilon(0.02));
      CHECK(now.planned == kept_by(s, one, rank));
      CHECK(now.activations ==
            Approx(activations_of(s, one, kept_by(s, one, rank), now.expert_rows)).epsilon(0.05));
    }
  }
}
