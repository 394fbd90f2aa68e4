// Ranks on two hosts of two ranks each, as mpirun starts them: sums are in the order of the hosts,
// for all that stands on them.
#include <catch2/catch.hpp>

#include "tests/examples/pretrain/mpirun.hpp"
#include "tests/examples/pretrain/workplace.hpp"

namespace {

using words = std::vector<std::string>;

// Two runs whose options differ: their losses and what they have learned must not.
void require_alike(const char* hosts, const words& both, const words& first, const words& second) {
  workplace w;
  const auto run = [&](const std::string& name, const words& own) {
    words all = {"--dtype", "f32",   "--steps", "6",     "--threads",
                 "1",       "--log", w / name,  "--out", w / name + ".out"};
    all.insert(all.end(), both.begin(), both.end());
    all.insert(all.end(), own.begin(), own.end());
    all = tiny(w.path, all);
    ended(0, run_program(all, [&] { become_mpirun(4, all, on_hosts(hosts)); }));
  };
  run("first", first);
  run("second", second);
  INFO("hosts " << hosts << ", " << first[1] << ", " << second[1]);
  CHECK(w.losses("first") == w.losses("second"));
  check_same_state(w / "first.out/checkpoint/", w / "second.out/checkpoint/");
}

}  // namespace

TEST_CASE("over two hosts a sharded optimizer and steps that do not wait have the bits of others") {
  if (!has_mpirun()) {
    WARN("not tested: no mpirun");
    return;
  }
  for (const char* hosts : {"0011", "0101"}) {
    require_alike(hosts, {}, {"--zero", "false"}, {"--zero", "true"});
    require_alike(hosts, {"--pp", "2"}, {"--zero", "false"}, {"--zero", "true"});
    require_alike(hosts, {"--pp", "2", "--zero", "true"}, {"--post_validation", "false"},
                  {"--post_validation", "true"});
  }
}

TEST_CASE("over two hosts ranks that share a model have the losses of one host") {
  if (!has_mpirun()) {
    WARN("not tested: no mpirun");
    return;
  }
  workplace w;
  const auto losses = [&](const char* hosts, const words& layout) {
    const std::string name = std::string(hosts) + layout[1] + ".jsonl";
    words all = {"--dtype", "f32", "--steps", "3", "--threads", "1", "--log", w / name};
    all.insert(all.end(), layout.begin(), layout.end());
    all = tiny(w.path, all);
    ended(0, run_program(all, [&] { become_mpirun(4, all, on_hosts(hosts)); }));
    return w.losses(name);
  };
  for (const words& layout :
       {words{"--tp", "2", "--sequence_parallel", "true", "--cp", "2"},
        {"--cp", "4", "--cp_window", "2", "--pp", "1"},
        {"--tp", "4", "--tp_x", "2", "--kv_heads", "2"},
        {"--pp", "2", "--pipeline", "zbv", "--cp", "2", "--layers", "4", "--accumulation", "4"}}) {
    const auto alone = losses("0000", layout);
    for (const char* hosts : {"0011", "0101"}) {
      INFO(hosts << ", " << layout[0] << " " << layout[1] << " " << layout[2]);
      compare_logs(alone, losses(hosts, layout));
    }
  }
}

TEST_CASE("over two hosts each dispatcher has the same bits, with and without a capacity") {
  if (!has_mpirun()) {
    WARN("not tested: no mpirun");
    return;
  }
  const words experts = {"--experts", "8", "--expert_inner", "24", "--ep", "4"};
  for (const char* hosts : {"0011", "0001"})
    for (const char* kind : {"all_gather", "all_to_all_sequence", "hierarchical"})
      for (const char* factor : {"0", "0.8"}) {
        words all = experts;
        all.insert(all.end(), {"--capacity_factor", factor});
        if (*kind == 'a' && factor[1] != 0) all.insert(all.end(), {"--capacity_pad", "true"});
        require_alike(hosts, all, {"--dispatcher", "all_to_all"}, {"--dispatcher", kind});
      }
}
