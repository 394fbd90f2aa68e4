// Configurations of models at random, most of them hostile: each is refused in words that name the
// file and the key, or the option, or its parameters are proven, and all ranks together hold each
// of them as often as its copies say: as many elements as one rank alone has. VELO_DESCRIPTIONS: a
// fifth of so many, since each is a file and a model.
#include <cmath>

#include "tests/descriptions/hostile.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/model_configs.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/model_parameters.hpp"

using namespace velo::testing;

namespace {

// More layers or experts than these are allowed, and take time in proportion to them.
constexpr json_int_t most_tried = 64;

json_tree some_model(random_source& random) {
  static const char* const types[] = {"llama", "mistral", "qwen2", "qwen3"};
  static const char* const texts[] = {llama, llama, mixtral, deepseek};
  std::string text = random.pick(texts);
  if (text.back() != '}') text += '}';
  json_tree made = read_json(text);
  if (text_in(made.get(), "model_type") == "llama") {
    json_object_set_new(made.get(), "model_type", json_string(random.pick(types)));
    if (random.one_in(3)) json_object_set_new(made.get(), "tie_word_embeddings", json_true());
    if (random.one_in(3)) json_object_set_new(made.get(), "attention_bias", json_true());
    if (random.one_in(3)) json_object_set_new(made.get(), "head_dim", json_integer(8));
  }
  return made;
}

std::string key_of(const json_t* object, random_source& random) {
  std::vector<std::string> keys;
  for (void* at = json_object_iter(const_cast<json_t*>(object)); at != nullptr;
       at = json_object_iter_next(const_cast<json_t*>(object), at))
    keys.emplace_back(json_object_iter_key(at));
  return keys.empty() ? "" : keys[random.below(keys.size())];
}

json_t* hostile_value(random_source& random) {
  switch (random.below(12)) {
    case 0:
      return json_string("64");
    case 1:
      return json_real(64.5);
    case 2:
      return json_null();
    case 3:
      return random.one_in(2) ? json_true() : json_false();
    case 4:
      return random.one_in(2) ? json_array() : json_object();
    case 5:
      return json_string(std::string(random.below(2000), '\x7f').c_str());
    case 6:
    case 7:
      return json_integer(static_cast<json_int_t>(random.below(9)));
    default:
      return json_integer(hostile_number(random));
  }
}

// Bytes that parsers and printers trip over.
void change_bytes(std::string& text, random_source& random) {
  static const std::string pieces[] = {"{",
                                       "}",
                                       "[",
                                       "\"",
                                       "\\u0000",
                                       "\\ud800",
                                       "\xc0\x80",
                                       ",",
                                       "1e999",
                                       "-",
                                       "null",
                                       std::string(1, '\0'),
                                       "%s%n",
                                       std::string(5000, '['),
                                       "99999999999999999999"};
  change_somewhere(text, pieces, random);
}

std::string some_config(random_source& random) {
  const json_tree model = some_model(random);
  for (std::uint64_t changes = random.one_in(2) ? 1 + random.below(2) : 0; changes > 0; --changes) {
    const std::string key = key_of(model.get(), random);
    if (random.one_in(6))
      json_object_del(model.get(), key.c_str());
    else
      json_object_set_new(model.get(), key.c_str(), hostile_value(random));
  }
  char* const dumped = json_dumps(model.get(), 0);
  std::string text = dumped;
  std::free(dumped);  // NOLINT(cppcoreguidelines-no-malloc): jansson's
  if (random.one_in(6)) change_bytes(text, random);
  return text;
}

bool is_large(const std::string& config) {
  const json_tree read(json_loadb(config.data(), config.size(), 0, nullptr));
  for (const char* key : {"num_hidden_layers", "num_local_experts", "n_routed_experts"}) {
    const json_int_t count = json_integer_value(json_object_get(read.get(), key));
    if (count > most_tried && count <= 65536) return true;
  }
  return false;
}

// A layout of at most 36 ranks, and what the command lets set beside it.
command::model_cuts some_cuts(random_source& random) {
  static const std::int64_t few[] = {1, 1, 2, 3, 4};
  command::model_cuts cuts = {};
  velo_topology_desc& d = cuts.job = VELO_TOPOLOGY_DESC_INIT;
  do {
    d.tp = random.pick(few), d.dp = random.pick(few), d.pp = random.one_in(3) ? 2 : 1;
  } while (d.tp * d.dp * d.pp > 36);
  if (d.dp % 2 == 0 && random.one_in(2)) d.ep = 2;
  if (d.tp > 1 && random.one_in(4)) d.tp_x = d.tp;
  cuts.sequence_parallel = d.tp > 1 && random.one_in(2);
  if (d.pp > 1 && random.one_in(4))
    cuts.empty_places = {static_cast<std::int64_t>(random.below(3))};
  for (std::int64_t stage = 0; stage < d.pp; ++stage) cuts.rank_of_stage.push_back(stage);
  return cuts;
}

velo::sharding cut(const std::string& file, const command::model_cuts& cuts) {
  velo::sharding made = velo::sharding::create(velo::topology::create(cuts.job));
  command::add_parameters(file, cuts, made);
  return made;
}

// The whole model on one rank.
velo::sharding whole(const std::string& file) {
  command::model_cuts cuts = {};
  cuts.job = VELO_TOPOLOGY_DESC_INIT;
  cuts.sequence_parallel = false;
  cuts.rank_of_stage = {0};
  return cut(file, cuts);
}

// Elements of a parameter on all ranks, each divided by its copies.
double held_once(const velo::sharding& parts, std::int64_t parameter, std::int64_t ranks) {
  double sum = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const velo_sharding_part part = parts.part(parameter, rank);
    for (std::int64_t i = 0; i < part.pieces; ++i) {
      const velo_sharding_piece piece = parts.piece(parameter, rank, i);
      double elements = 1;
      for (std::int32_t d = 0; d < part.ndim; ++d)
        elements *= static_cast<double>(piece.end[d] - piece.begin[d]);
      sum += elements / static_cast<double>(piece.copies);
    }
  }
  return sum;
}

std::string wrong_in_model(const velo::sharding& parts, const velo::sharding& one) {
  parts.check();
  const velo_sharding_info cut_one = parts.info(), whole_one = one.info();
  if (cut_one.parameters != whole_one.parameters) return "another number of parameters";
  for (std::int64_t p = 0; p < cut_one.parameters; ++p) {
    const std::string name = static_cast<const char*>(parts.parameter_name(p));
    if (name != static_cast<const char*>(one.parameter_name(p))) return "the name " + name;
    const double wanted = static_cast<double>(velo_sharding_part(one.part(p, 0)).elements),
                 held = held_once(parts, p, cut_one.ranks);
    if (std::abs(held - wanted) > 1e-9 * wanted + 1e-3)
      return name + ": " + std::to_string(held) + " of " + std::to_string(wanted) + " elements";
  }
  return "";
}

// A refusal names the file and says what was expected, or names an option.
std::string wrong_in_words(const std::string& words, const std::string& file) {
  const bool named =
      words.compare(0, file.size() + 1, file + ":") == 0 || words.rfind("--", 0) == 0;
  const bool printable = std::all_of(words.begin(), words.end(), [](char c) {
    return c == '\n' || static_cast<unsigned char>(c) >= ' ';
  });
  return named && printable && words.size() < 1000 ? "" : "the words " + words;
}

std::string wrong_in_config(const std::string& file, const command::model_cuts& cuts,
                            int& accepted) {
  try {
    const velo::sharding parts = cut(file, cuts);
    ++accepted;
    return wrong_in_model(parts, whole(file));
  } catch (const command::input_error& refusal) {
    return wrong_in_words(refusal.what(), file);
  } catch (const velo::error& failure) {  // of the topology, or of a dimension that cannot be cut
    return failure.argument()[0] == 0 ? "no argument" : "";
  }
}

}  // namespace

TEST_CASE("any configuration of a model is refused by its key, or its parts make up the model") {
  random_source random(30);
  const temporary_folder folder;
  bounds taken;
  const int configurations = descriptions() / 5;
  int accepted = 0, large = 0;
  for (int i = 0; i < configurations + large; ++i) {  // so many besides the large ones
    const std::string config = some_config(random);
    const command::model_cuts cuts = some_cuts(random);
    if (is_large(config)) {
      ++large;
      continue;
    }
    const std::string file = folder.put("config.json", config);
    taken.begin();
    const std::string wrong = wrong_in_config(file, cuts, accepted);
    taken.end(i);
    if (!wrong.empty()) FAIL_CHECK("configuration " << i << ", " << config << ": " << wrong);
  }
  taken.check();
  CHECK(accepted > configurations / 4);
  CHECK(accepted < configurations * 3 / 4);
  CHECK(large < configurations / 10);
}
