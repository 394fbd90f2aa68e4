// Reads config.json of Llama, Mistral, Qwen2, Qwen3, Mixtral, GLM-4-MoE, DeepSeek-V3, and of Llama
// with layers that share keys and values, as velo's pretrain writes it.
#include "tools/velo/model_parameters.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

namespace {

constexpr std::int64_t most_count = 65536;                    // of layers and of experts
constexpr std::int64_t most_experts = std::int64_t{1} << 20;  // of all layers

class config {
 public:
  explicit config(const std::string& file) : file_(file) {
    json_error_t error;
    const std::string text = read_file(file);
    root_.reset(json_loadb(text.data(), text.size(), 0, &error));
    if (root_ == nullptr)
      throw input_error(file + ":" + std::to_string(error.line) + ": " + reason_of(error));
    if (!json_is_object(root_.get())) fail("expected an object");
  }

  [[noreturn]] void fail(const std::string& what) const { throw input_error(file_ + ": " + what); }

  bool has(const char* key) const {
    const json_t* value = member(root_.get(), key);
    return value != nullptr && !json_is_null(value);
  }
  // From 1 on; products of three sizes fit 64 bits.
  std::int64_t size(const char* key) const { return number(key, 1, std::int64_t{1} << 20); }
  std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    const json_t* value = member(root_.get(), key);
    if (value == nullptr) fail(std::string("expected a key ") + key);
    const json_int_t given = json_is_integer(value) ? json_integer_value(value) : -1;
    if (given < least || given > most)
      fail(std::string(key) + ": expected a whole number from " + std::to_string(least) + " to " +
           std::to_string(most));
    return given;
  }
  // 0 too, as where the key is missing
  std::int64_t count(const char* key) const { return has(key) ? number(key, 0, most_count) : 0; }
  std::int64_t size(const char* key, std::int64_t otherwise) const {
    return has(key) ? size(key) : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const json_t* value = member(root_.get(), key);
    if (value == nullptr || json_is_null(value)) return otherwise;
    if (!json_is_boolean(value)) fail(std::string(key) + ": expected true or false");
    return json_is_true(value);
  }
  std::string word(const char* key) const { return text(root_.get(), key); }

 private:
  std::string file_;
  json root_;
};

// The place of a product in a block: a first product is cut by rows of its weight, a second by
// columns.
enum class product { first, second };

// Elements of a dimension that are cut together: `units` of them, of which `repeat` share theirs.
struct heads {
  std::int64_t size, units, repeat;
};

class model {
 public:
  model(const config& from, const model_cuts& cuts, velo::sharding& to)
      : from_(from), cuts_(cuts), to_(to), type_(from.word("model_type")) {}

  void add() {
    const bool known = std::any_of(std::begin(kinds), std::end(kinds),
                                   [&](const char* kind) { return type_ == kind; });
    if (!known) {
      std::string names;
      for (const char* kind : kinds) names += (names.empty() ? "" : ", ") + std::string(kind);
      from_.fail("model_type: expected one of " + names + ", got " +
                 (type_.size() <= 64 ? "\"" + type_ + "\""
                                     : std::to_string(type_.size()) + " characters"));
    }
    if (cuts_.job.gtp > 1 || cuts_.job.egtp > 1)
      throw input_error("--gtp, --egtp: expected 1: the rules of this command cut nothing by them");
    refuse_in_two();
    hidden_ = from_.size("hidden_size");
    const std::int64_t layers = from_.number("num_hidden_layers", 1, most_count);
    const std::int64_t vocabulary = from_.size("vocab_size");
    const std::vector<std::int64_t> counts = layers_of_stages(layers);
    const bool tied = from_.flag("tie_word_embeddings", false);
    const std::vector<std::int64_t>& rank_of = cuts_.rank_of_stage;
    stages_ = {rank_of.front()};
    if (tied && rank_of.back() != rank_of.front()) stages_.push_back(rank_of.back());
    weight("model.embed_tokens.weight", vocabulary, hidden_, product::first);
    std::int64_t layer = 0;
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      stages_ = {rank_of[stage]};
      for (const std::int64_t end = layer + counts[stage]; layer < end; ++layer) {
        layers_left_ = layers - layer;
        add_layer("model.layers." + std::to_string(layer) + ".", layer);
      }
    }
    stages_ = {rank_of.back()};
    vector("model.norm.weight", hidden_);
    if (!tied) weight("lm_head.weight", vocabulary, hidden_, product::first);
  }

 private:
  static constexpr const char* kinds[] = {
      "llama",          "mistral",  "qwen2",           "qwen3",       "mixtral",
      "mixtral_router", "glm4_moe", "glm4_moe_router", "deepseek_v3", "deepseek_v3_router",
      "llama_cla"};

  // The number of layers of each stage.
  std::vector<std::int64_t> layers_of_stages(std::int64_t layers) const {
    const std::vector<std::int64_t>& empty = cuts_.empty_places;
    const std::int64_t places = layers + static_cast<std::int64_t>(empty.size());
    if (!empty.empty() && cuts_.job.pp == 1)
      throw input_error("--noop-layers: expected --pp 2 or more, got 1 stage");
    if (!empty.empty() && empty.back() >= places)
      throw input_error("--noop-layers: expected places below " + std::to_string(places) +
                        ", the number of layers and of these, got " + std::to_string(empty.back()));
    if (cuts_.stage_layers) return without_places(listed_layers(places), empty);
    const std::size_t stages = cuts_.rank_of_stage.size();
    if (static_cast<std::int64_t>(stages) > layers)
      throw input_error("--pp: expected at most " + std::to_string(layers) +
                        " stages, one a layer, got " + std::to_string(stages) +
                        "; --stage-layers may leave some without");
    std::vector<std::int64_t> counts = without_places(even_layers(places, stages), empty);
    const auto none = std::find(counts.begin(), counts.end(), 0);
    if (none != counts.end())
      throw input_error("--noop-layers: expected a layer in each stage, got none in stage " +
                        std::to_string(none - counts.begin()));
    return counts;
  }

  std::vector<std::int64_t> listed_layers(std::int64_t places) const {
    stage_list::result found = cuts_.stage_layers->of(cuts_.rank_of_stage, places);
    if (!found.expected.empty())
      throw input_error("--stage-layers: expected " + found.expected + ", got " + found.got);
    return std::move(found.counts);
  }

  // Routers and experts, and the whole products of latent attention, multiply rows of all elements.
  void refuse_in_two() const {
    if (in_two() && (is_mixtral() || is_glm() || is_deepseek()))
      throw input_error(
          "--tp-x: expected a model without experts, whose routers take whole rows: in two "
          "dimensions a rank has a part of each row, got " +
          type_);
  }

  bool is(const char* kind) const { return type_ == kind; }
  bool is_mixtral() const { return is("mixtral") || is("mixtral_router"); }
  bool is_deepseek() const { return is("deepseek_v3") || is("deepseek_v3_router"); }
  bool is_glm() const { return is("glm4_moe") || is("glm4_moe_router"); }
  bool in_two() const { return cuts_.job.tp_x > 0; }

  struct cut {
    const char* axis;
    std::int64_t dimension;
    velo_sharding_block block;         // of the whole dimension
    std::vector<std::int64_t> bounds;  // or
  };
  void put(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<cut>& cuts, const char* partial, bool experts = false,
           bool has_gradient = true) {
    std::vector<velo_sharding_cut> given;
    for (const cut& one : cuts)
      given.push_back({one.axis, one.dimension, one.bounds.empty() ? &one.block : nullptr,
                       one.bounds.empty() ? 1 : 0, one.bounds.empty() ? nullptr : one.bounds.data(),
                       static_cast<std::int64_t>(one.bounds.size())});
    velo_sharding_parameter p = VELO_SHARDING_PARAMETER_INIT;
    p.name = name.c_str();
    p.ndim = static_cast<std::int32_t>(shape.size()), p.shape = shape.data();
    p.cuts = given.data(), p.cut_count = static_cast<std::int64_t>(given.size());
    p.stages = stages_.data(), p.stage_count = static_cast<std::int64_t>(stages_.size());
    p.partial = partial, p.experts = experts ? 1 : 0, p.no_gradient = has_gradient ? 0 : 1;
    to_.add(p);
  }
  static cut whole(const char* axis, std::int64_t dimension, const heads& h) {
    return {axis, dimension, {h.size, h.units, h.repeat}, {}};
  }
  static heads each(std::int64_t size) { return {size, size, 1}; }

  // [rows, columns]: a first product is cut by rows, a second by columns, in two dimensions both.
  void weight(const std::string& name, const heads& rows, const heads& columns, product at) {
    const bool first = at == product::first;
    std::vector<cut> cuts;
    if (in_two())
      cuts = {whole(first ? "tp_x" : "tp_y", 0, rows), whole(first ? "tp_y" : "tp_x", 1, columns)};
    else
      cuts = {first ? whole("tp", 0, rows) : whole("tp", 1, columns)};
    put(name, {rows.size, columns.size}, cuts, nullptr);
  }
  void weight(const std::string& name, std::int64_t rows, std::int64_t columns, product at) {
    weight(name, each(rows), each(columns), at);
  }

  // A weight or bias along the hidden dimension, of a part of the tokens: whole on every rank, in
  // two dimensions cut like the hidden dimension.
  void vector(const std::string& name, std::int64_t size) {
    if (in_two())
      put(name, {size}, {whole("tp_y", 0, each(size))}, "tp_x");
    else
      put(name, {size}, {}, cuts_.sequence_parallel ? "tp" : nullptr);
  }
  // A weight that every tensor rank multiplies whole.
  void shared(const std::string& name, const std::vector<std::int64_t>& shape) {
    put(name, shape, {}, cuts_.sequence_parallel ? "tp" : nullptr);
  }
  // A bias of a first product. In two dimensions ranks along tp_y add it to different rows.
  void bias(const std::string& name, const heads& rows) {
    put(name, {rows.size}, {whole(in_two() ? "tp_x" : "tp", 0, rows)}, in_two() ? "tp_y" : nullptr);
  }

  void add_layer(const std::string& at, std::int64_t layer) {
    vector(at + "input_layernorm.weight", hidden_);
    if (is_deepseek())
      add_latent_attention(at + "self_attn.");
    else
      add_attention(at + "self_attn.", !shares_keys(layer));
    vector(at + "post_attention_layernorm.weight", hidden_);
    const std::int64_t dense = from_.count("first_k_dense_replace");
    if (is_mixtral())
      add_experts(at + "block_sparse_moe.", from_.number("num_local_experts", 1, most_count),
                  from_.size("intermediate_size"), {"w1", "w3", "w2"});
    else if ((is_glm() || is_deepseek()) && layer >= dense)
      add_shared_and_experts(at + "mlp.");
    else
      add_gated(at + "mlp.", from_.size("intermediate_size"), from_.flag("mlp_bias", false));
  }

  // Whether a layer uses the keys and values of the one before it, and has no weights for them.
  bool shares_keys(std::int64_t layer) const {
    return is("llama_cla") && (layer + 1) % from_.number("cla_share_factor", 2, most_count) == 0;
  }

  void add_attention(const std::string& at, bool has_keys) {
    const std::int64_t n = from_.size("num_attention_heads"),
                       g = from_.size("num_key_value_heads", n);
    if (n % g != 0)
      from_.fail("num_key_value_heads: expected a divisor of num_attention_heads, " +
                 std::to_string(n) + ", got " + std::to_string(g));
    if (!from_.has("head_dim") && hidden_ % n != 0)
      from_.fail("num_attention_heads: expected a divisor of hidden_size, " +
                 std::to_string(hidden_) + ", got " + std::to_string(n));
    const std::int64_t d = from_.size("head_dim", hidden_ / n);
    const std::int64_t ranks = in_two() ? cuts_.job.tp_x : cuts_.job.tp;
    if (ranks > n)
      throw input_error(std::string(in_two() ? "--tp-x" : "--tp") + ": expected at most " +
                        std::to_string(n) + " ranks, one a query head, got " +
                        std::to_string(ranks));
    const bool groups = ranks <= g;
    const heads query{n * d, groups ? g : n, 1};
    const heads key{g * d, groups ? g : n, groups ? 1 : n / g};
    const bool biased = from_.flag("attention_bias", is("qwen2"));
    weight(at + "q_proj.weight", query, each(hidden_), product::first);
    if (has_keys) {
      weight(at + "k_proj.weight", key, each(hidden_), product::first);
      weight(at + "v_proj.weight", key, each(hidden_), product::first);
    }
    if (biased) bias(at + "q_proj.bias", query);
    if (biased && has_keys) {
      bias(at + "k_proj.bias", key);
      bias(at + "v_proj.bias", key);
    }
    weight(at + "o_proj.weight", each(hidden_), query, product::second);
    if (biased && (is("llama") || is("qwen3"))) vector(at + "o_proj.bias", hidden_);
    if (is("qwen3") || (is("glm4_moe") && from_.flag("use_qk_norm", false))) {
      // each rank normalizes its own heads; in two dimensions ranks along tp_y have other rows
      put(at + "q_norm.weight", {d}, {}, "tp");
      put(at + "k_norm.weight", {d}, {}, "tp");
    }
  }

  void add_latent_attention(const std::string& at) {
    const std::int64_t n = from_.size("num_attention_heads"), kv = from_.size("kv_lora_rank"),
                       rope = from_.size("qk_rope_head_dim"), nope = from_.size("qk_nope_head_dim"),
                       v = from_.size("v_head_dim");
    const heads query{n * (nope + rope), n, 1};
    const bool biased = from_.flag("attention_bias", false);
    if (from_.has("q_lora_rank")) {
      const std::int64_t q = from_.size("q_lora_rank");
      shared(at + "q_a_proj.weight", {q, hidden_});
      if (biased) shared(at + "q_a_proj.bias", {q});
      shared(at + "q_a_layernorm.weight", {q});
      weight(at + "q_b_proj.weight", query, each(q), product::first);
    } else {
      weight(at + "q_proj.weight", query, each(hidden_), product::first);
    }
    shared(at + "kv_a_proj_with_mqa.weight", {kv + rope, hidden_});
    if (biased) shared(at + "kv_a_proj_with_mqa.bias", {kv + rope});
    shared(at + "kv_a_layernorm.weight", {kv});
    weight(at + "kv_b_proj.weight", {n * (nope + v), n, 1}, each(kv), product::first);
    weight(at + "o_proj.weight", each(hidden_), {n * v, n, 1}, product::second);
    if (biased) vector(at + "o_proj.bias", hidden_);
  }

  void add_gated(const std::string& at, std::int64_t inner, bool biased) {
    weight(at + "gate_proj.weight", inner, hidden_, product::first);
    weight(at + "up_proj.weight", inner, hidden_, product::first);
    weight(at + "down_proj.weight", hidden_, inner, product::second);
    if (!biased) return;
    bias(at + "gate_proj.bias", each(inner));
    bias(at + "up_proj.bias", each(inner));
    vector(at + "down_proj.bias", hidden_);
  }

  void add_shared_and_experts(const std::string& at) {
    const std::int64_t inner = from_.size("moe_intermediate_size");
    const std::int64_t experts = from_.number("n_routed_experts", 1, most_count);
    add_experts(at, experts, inner, {"gate_proj", "up_proj", "down_proj"});
    // set by the tokens that experts got, not by a gradient
    if (is("glm4_moe") || is("deepseek_v3") || from_.flag("router_bias", true))
      put(at + "gate.e_score_correction_bias", {experts}, {}, nullptr, false, false);
    const std::int64_t common = from_.count("n_shared_experts");
    if (common > 0) add_gated(at + "shared_experts.", inner * common, false);
  }

  // An expert belongs to one index of ep: bounds of the dimension that etp does not cut say which.
  void add_experts(const std::string& at, std::int64_t experts, std::int64_t inner,
                   const std::vector<const char*>& names) {
    const std::int64_t ep = cuts_.job.ep;
    if (ep > experts)
      throw input_error("--ep: expected at most " + std::to_string(experts) +
                        " ranks, one an expert, got " + std::to_string(ep));
    if (experts > most_experts / std::max(layers_left_, ep))
      from_.fail("expected at most 2^20 experts of all layers, and experts times --ep");
    shared(at + "gate.weight", {experts, hidden_});
    std::int64_t owner = 0, left = 0;
    for (std::int64_t e = 0; e < experts; ++e, --left) {
      if (left == 0) left = experts / ep + (owner++ < experts % ep ? 1 : 0);
      std::vector<std::int64_t> bounds(static_cast<std::size_t>(2 * ep), 0);
      bounds[static_cast<std::size_t>(2 * (owner - 1) + 1)] = hidden_;
      const cut held{"ep", 1, {}, bounds}, held_down{"ep", 0, {}, bounds};
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name = at + "experts." + std::to_string(e) + "." + names[i] + ".weight";
        if (i < 2)
          put(name, {inner, hidden_}, {whole("etp", 0, each(inner)), held}, nullptr, true);
        else
          put(name, {hidden_, inner}, {held_down, whole("etp", 1, each(inner))}, nullptr, true);
      }
    }
  }

  const config& from_;
  const model_cuts& cuts_;
  velo::sharding& to_;
  const std::string type_;
  std::int64_t hidden_ = 0;
  std::int64_t layers_left_ = 0;  // from this one on; with experts, so have all behind it
  std::vector<std::int64_t> stages_;
};

}  // namespace

void add_parameters(const std::string& file, const model_cuts& cuts, velo::sharding& to) {
  const config from(file);
  model(from, cuts, to).add();
}

}  // namespace command
