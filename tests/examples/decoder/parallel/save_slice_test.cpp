// Slices in which ranks gather a tensor to save it, of any size and under any cut (F66): the same
// files, none of which passes through more than a slice of memory, and read again in other slices.
#include <algorithm>

#include "tests/examples/decoder/parallel/saved_model.hpp"

namespace {

struct cut {
  const char* name;
  std::int64_t ranks;
  void (*set)(settings&);
};

const cut cuts[] = {{"tp 2 of an uneven width", 2, [](settings& s) { s.parallel.tp = 2; }},
                    {"tp 2, three stages of one and two layers", 6,
                     [](settings& s) {
                       s.parallel.tp = 2, s.parallel.pp = 3;
                       s.parallel.noop_layers = "0,2";
                     }},
                    {"tp 2, tied over two stages by zbv, two copies that share the optimizer", 8,
                     [](settings& s) {
                       s.model.tied = true;
                       s.parallel.tp = s.parallel.pp = 2, s.parallel.pipeline = "zbv";
                       s.run.zero = true;
                     }},
                    {"tp 2 by 2, two stages", 8,
                     [](settings& s) { s.parallel.tp = 4, s.parallel.tp_x = s.parallel.pp = 2; }},
                    {"tp 2, two stages, cp 2, that share the optimizer", 8, [](settings& s) {
                       s.parallel.tp = s.parallel.pp = s.parallel.cp = 2;
                       s.run.zero = true;
                     }}};

settings saved_settings() {
  settings s = small_model();  // an inner width that leaves two ranks' elements in a word
  s.model.dtype = "bf16";
  return s;
}

// The most words that a tensor of ranks takes at a time.
std::int64_t most_words(const decoder::checkpoint& of) {
  std::int64_t most = 0;
  for (const auto* all : {&of.weights, &of.state})
    for (const decoder::named_tensor& each : *all)
      if (each.data == nullptr)
        decoder::each_piece(
            each, [&](std::int64_t, std::int64_t count) { most = std::max(most, count); });
  return most;
}

// The files of a model after a step, in slices of so many bytes.
std::string files_after_a_step(settings s, std::int64_t slice, const std::string& path) {
  s.run.save_slice = slice;
  outcome made;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    take_steps(rank, one, 1, made);
    const std::int64_t words = most_words(one.state("{}"));
    if (rank.leads()) CHECK((words > 0 && 4 * words <= slice));
    save(rank, one, path);
  });
  return contents_of(path);
}

// The files of a model that was read from others, both in slices of so many bytes.
std::string files_read(settings s, std::int64_t slice, const std::string& from,
                       const std::string& path) {
  s.run.save_slice = slice;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.resume(decoder::checkpoint_reader(from));
    save(rank, one, path);
  });
  return contents_of(path);
}

}  // namespace

TEST_CASE("slices of any size save the same files under cuts of matrices and stages") {
  for (const cut& each : cuts) {
    INFO(each.name);
    const temporary folder;
    settings s = saved_settings();
    each.set(s);
    s.run.ranks = each.ranks;
    const std::string large = files_after_a_step(s, 4 << 20, folder / "large");
    CHECK((files_after_a_step(s, 4096, folder / "small") == large));
    CHECK((files_read(s, 5000, folder / "small", folder / "again") == large));
    settings whole = saved_settings();
    whole.model = s.model;
    CHECK((files_read(whole, 4096, folder / "small", folder / "one") == large));
  }
}
