// Reads member by member. An unknown member is refused, so that a misspelled one is not skipped.
#include "sched/schedule/json.hpp"

#include <algorithm>
#include <utility>

#include "core/failure.hpp"
#include "core/text/json.hpp"
#include "sched/schedule/assemble.hpp"
#include "sched/schedule/kind_name.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::json;
using core::text;
using numbers = std::vector<std::int32_t>;

const json& require(const json& value, json::type type, const char* name, const char* expected) {
  if (value.kind() != type) fail(VELO_ERR_ARGUMENT, name, expected, value.kind_name());
  return value;
}

std::int32_t read_number(const json& value, std::int32_t least, const char* name) {
  const std::int64_t number = require(value, json::type::integer, name, "a whole number").integer();
  if (number < least || number > most_index)
    fail(VELO_ERR_ARGUMENT, name, text("%d to %d", least, most_index), core::number(number));
  return static_cast<std::int32_t>(number);
}

numbers read_numbers(const json& value, const std::string& name) {
  require(value, json::type::array, name.c_str(), "an array of numbers");
  numbers all;
  for (std::size_t i = 0; i < value.size(); ++i)
    all.push_back(read_number(value.at(i), 0, text("%s[%zu]", name.c_str(), i)));
  return all;
}

// Reads an array with one element for each rank.
template <class Read>
void each_rank(const json& value, const char* name, Read&& read) {
  require(value, json::type::array, name, "an array by rank");
  if (value.size() > static_cast<std::size_t>(most_ranks))
    fail(VELO_ERR_ARGUMENT, name, text("at most %d ranks", most_ranks), text("%zu", value.size()));
  for (std::size_t rank = 0; rank < value.size(); ++rank) {
    const text of_rank("%s[%zu]", name, rank);
    read(value.at(rank), static_cast<const char*>(of_rank));
  }
}

std::vector<action> read_row(const json& value, const char* name) {
  require(value, json::type::array, name, "an array of actions");
  std::vector<action> row(value.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const json one = value.at(i);
    const text path("%s[%zu]", name, i);
    require(one, json::type::string, path, "an action, as \"2F0\"");
    if (!parse(one.string(), row[i]))
      fail(VELO_ERR_ARGUMENT, path, "an action, as \"2F0\"", text("%.80s", one.string()));
  }
  return row;
}

struct document {
  stated_sizes beside;
  std::int32_t ranks = -1;
  bool has_actions = false, has_layout = false;
  std::string layout_text;
  numbers noops;
  std::vector<std::vector<action>> rows;
};

void read_member(const char* key, const json& value, document& into) {
  const std::string_view name = key;
  const text path("text.%.60s", key);
  const struct {
    std::string_view name;
    std::int32_t* into;
  } counts[] = {{"stages", &into.beside.stages},
                {"microbatches", &into.beside.microbatches},
                {"splits", &into.beside.splits},
                {"chains", &into.beside.chains},
                {"ranks", &into.ranks}};
  for (const auto& count : counts)
    if (name == count.name) {
      *count.into = read_number(value, 0, path);
      return;
    }
  if (name == "kind") {
    const char* const kind = require(value, json::type::string, path, "a kind's name").string();
    if (!parse_kind(kind, into.beside.kind))
      fail(VELO_ERR_ARGUMENT, path, "a kind's name, as \"1f1b\"", text("%.80s", kind));
  } else if (name == "placement") {
    each_rank(value, path, [&](const json& of_rank, const char* where) {
      into.beside.placement.push_back(read_numbers(of_rank, where));
    });
  } else if (name == "layout") {
    into.layout_text = require(value, json::type::string, path, "a layout").string();
    into.has_layout = true;
  } else if (name == "noop_layers") {
    into.noops = read_numbers(value, static_cast<const char*>(path));
  } else if (name == "actions") {
    into.has_actions = true;
    each_rank(value, path, [&](const json& of_rank, const char* where) {
      into.rows.push_back(read_row(of_rank, where));
    });
  } else {
    fail(VELO_ERR_ARGUMENT, path,
         "kind, ranks, stages, microbatches, splits, chains, placement, layout, noop_layers or "
         "actions",
         text("%.60s", key));
  }
}

void write_list(core::json_writer& to, const numbers& all) {
  to.array();
  for (const std::int32_t one : all) to.value(one);
  to.end();
}

}  // namespace

schedule read_json(std::string_view source) {
  const json all = json::parse(source, "text");
  require(all, json::type::object, "text", "an object");
  document read;
  all.each([&](const char* key, const json& value) { read_member(key, value, read); });
  if (!read.has_actions) fail(VELO_ERR_ARGUMENT, "text.actions", "an array by rank", "none");
  const auto ranks = static_cast<std::int32_t>(read.rows.size());
  if (read.ranks >= 0 && read.ranks != ranks)
    fail(VELO_ERR_ARGUMENT, "text.ranks", text("the %d of the actions", ranks),
         text("%d", read.ranks));
  schedule result = assemble(std::move(read.rows), read.beside);
  if (!read.has_layout && !read.noops.empty())
    fail(VELO_ERR_ARGUMENT, "text.layout", "one, where layers do nothing", "none");
  if (read.has_layout) {
    layout layers = parse_layout(read.layout_text, "text.layout");
    if (layers.stages.size() != static_cast<std::size_t>(result.sizes().chain_length()))
      fail(VELO_ERR_ARGUMENT, "text.layout", text("%d stages", result.sizes().chain_length()),
           text("%zu", layers.stages.size()));
    add_noops(layers, std::move(read.noops), "text.noop_layers");
    result.set_layers(std::make_shared<const layout>(std::move(layers)));
  }
  return result;
}

std::string write_json(const schedule& pipeline) {
  const shape& of = pipeline.sizes();
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  to.object().member("kind", name_of(of.kind));
  const std::pair<const char*, std::int32_t> counts[] = {{"ranks", of.ranks},
                                                         {"stages", of.stages},
                                                         {"microbatches", of.microbatches},
                                                         {"splits", of.splits},
                                                         {"chains", of.chains}};
  for (const auto& [name, count] : counts) to.member(name, count);
  to.line().key("placement").array();
  for (std::int32_t rank = 0; rank < of.ranks; ++rank) write_list(to, pipeline.stages_of(rank));
  to.end();
  if (pipeline.layers() != nullptr) {
    to.line().member("layout", text_of(*pipeline.layers())).key("noop_layers");
    write_list(to, pipeline.layers()->noops);
  }
  to.line().key("actions").array();
  std::string word;
  for (std::int32_t rank = 0; rank < of.ranks; ++rank) {
    to.line().array();
    for (row_reader row(pipeline, rank); !row.done(); row.pass()) {
      word.clear();
      append(word, row.next());
      to.value(word);
    }
    to.end();
  }
  to.end().end();
  return out += '\n';
}

}  // namespace velo::sched
