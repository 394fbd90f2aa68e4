// velo schedule, run as a program: kinds, formats, verdicts, exit codes.
#include <fstream>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

// A file that goes with the test.
class file {
 public:
  explicit file(const std::string& text) : path_(folder_.put("file", text)) {}
  operator std::string() const { return path_; }
  std::string text() const { return contents_of(path_); }

 private:
  const velo::testing::temporary_folder folder_;
  const std::string path_;
};

}  // namespace

TEST_CASE("a schedule is priced as JSON with exact numbers") {
  const outcome o = run_velo(
      "schedule interleaved --ranks 8 --microbatches 24 --chunks 4 --costs 18522,18086,9337 "
      "--format summary-json");
  CHECK(o.code == 0);
  const json all = parsed(o.out);
  CHECK(number_of(all, "makespan") == 1183083.75);
  CHECK(number_of(all, "work") == 1102680);
  CHECK(number_of(all, "beta") == 80403.75);
  CHECK(number_of(all, "sigma") == 80403.75);
  const json_t* peaks = json_object_get(all.get(), "peak_activations");
  REQUIRE(json_array_size(peaks) == 8);
  CHECK(json_number_value(json_array_get(peaks, 0)) == 9.75);
}

TEST_CASE("a schedule is written as rows, to a file or not") {
  const outcome o = run_velo("schedule 1f1b --ranks 2 --microbatches 2 --format csv");
  CHECK(o.code == 0);
  CHECK(o.out == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const file rows("");
  const outcome written =
      run_velo("schedule 1f1b --ranks 2 --microbatches 2 --format csv -o " + std::string(rows));
  CHECK(written.out.empty());
  CHECK(rows.text() == o.out);
}

TEST_CASE("groups, an extra warm-up and messages change what they say they do") {
  const std::string sizes = "schedule interleaved --ranks 2 --microbatches 5 --format csv";
  CHECK(run_velo(sizes + " --group 3").out.find("0F0,0F1,0F2,2F0,2F1,2F2,2B0") == 0);
  CHECK(run_velo(sizes + " --group 3 --extra-warmup").out.find("0F0,0F1,0F2,2F0,2F1,2F2,0F3,2B0") ==
        0);
  const outcome o =
      run_velo("schedule 1f1b --ranks 2 --microbatches 1 --comm 0.5 --format summary");
  CHECK(o.out.find("makespan  7\n") != std::string::npos);
}

TEST_CASE("--check gives a verdict") {
  const file good("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  outcome o = run_velo("schedule --check " + std::string(good));
  CHECK(o.code == 0);
  CHECK(o.out == "can run: 2 ranks, 2 stages, 2 micro-batches, 8 actions\n");
  const file bad("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  o = run_velo("schedule --check " + std::string(bad));
  CHECK(o.code == 2);
  CHECK(o.out.find("rank 0, action 1: 0B0 waits") == 0);
  CHECK(o.out.find("rank 1, action 0: 1F1 waits") != std::string::npos);
  const file none("0F0,0B0\n1F0,1x0\n");
  o = run_velo("schedule --check " + std::string(none));
  CHECK(o.code == 1);
  CHECK(o.out.find("line 2, column 5: expected an action") != std::string::npos);
}

TEST_CASE("a file that can run is priced, drawn and written as a kind is") {
  const std::string kind = "schedule zbv --ranks 2 --microbatches 4 ";
  const file rows("");
  run_velo(kind + "--format csv -o " + std::string(rows));
  const std::string check = "schedule --check " + std::string(rows);
  const std::string verdict = "can run: 2 ranks, 4 stages, 4 micro-batches, 48 actions\n";
  CHECK(run_velo(check).out == verdict);
  CHECK(run_velo(check + " --costs 1,2,1 --comm 0.5").out ==
        verdict + run_velo(kind + "--costs 1,2,1 --comm 0.5").out);
  CHECK(run_velo(check + " --format csv").out == rows.text());
  CHECK(run_velo(check + " --costs 1,2,1 --format summary-json").out ==
        run_velo(kind + "--costs 1,2,1 --format summary-json").out);
  const file picture("");
  const outcome drawn = run_velo(check + " --format svg -o " + std::string(picture));
  CHECK(drawn.code == 0);
  CHECK(drawn.out == verdict);
  CHECK(picture.text().find("custom: 2 ranks, 4 stages") != std::string::npos);
  const file bad("0B0,0F0\n"), untouched("as before");
  CHECK(run_velo("schedule --check " + std::string(bad) + " --format svg -o " +
                 std::string(untouched))
            .code == 2);
  CHECK(untouched.text() == "as before");
}

TEST_CASE("JSON is written, and checked as rows are") {
  const file all("");
  const outcome o =
      run_velo("schedule zbv --ranks 2 --microbatches 4 --format json -o " + std::string(all));
  CHECK(o.code == 0);
  const json read = parsed(all.text());
  CHECK(json_array_size(json_object_get(read.get(), "placement")) == 2);
  CHECK(run_velo("schedule --check " + std::string(all)).out ==
        "can run: 2 ranks, 4 stages, 4 micro-batches, 48 actions\n");
  const file wrong(R"({"actions": [["0F0", "0X0"]]})");
  const outcome refused = run_velo("schedule --check " + std::string(wrong));
  CHECK(refused.code == 1);
  CHECK(refused.out.find("text.actions[0][1]: expected an action") != std::string::npos);
}

TEST_CASE("stages hold what a layout says") {
  const std::string sizes = "schedule 1f1b --ranks 2 --microbatches 4 ";
  const outcome o = run_velo(sizes + "--layout 'Et*3|tL' --format summary-json");
  CHECK(o.code == 0);
  CHECK(number_of(parsed(o.out), "work") == 6);  // a quarter of two ranks' 12
  CHECK(run_velo(sizes + "--layers 4 --noop-layers 0,1 --format summary-json").code == 0);
}

TEST_CASE("activations go to the host, are made again, and pairs are fused where asked for") {
  const auto csv = [](const std::string& words) {
    return run_velo("schedule " + words + " --ranks 4 --microbatches 8 --format csv").out;
  };
  CHECK(csv("nanopipe").find("OFFLOAD") == std::string::npos);
  CHECK(csv("nanopipe --swap").find("7OFFLOAD0") != std::string::npos);
  CHECK(csv("ripipe").find("0RECOMPUTE4") != std::string::npos);
  CHECK(csv("ripipe --recompute in-bubble") == csv("ripipe"));
  CHECK(csv("ripipe --recompute in-advance").find("0RECOMPUTE0") != std::string::npos);
  CHECK(csv("interleaved --overlap").find(")OVERLAP_F_B") != std::string::npos);
  const outcome o = run_velo(
      "schedule ripipe --ranks 4 --microbatches 8 --recompute in-advance --recompute-cost 0.5 "
      "--format summary-json");
  CHECK(number_of(parsed(o.out), "work") ==
        8 * 3.25);  // the last rank's last stage is not made again
}

TEST_CASE("what makes no sense is refused in the words of the command") {
  const auto refused = [](const std::string& words, const std::string& reason) {
    check_refused("schedule " + words, reason);
  };
  refused("", "wants one KIND");
  refused("1f1b --microbatches 2", "wants --ranks P");
  refused("1f1b --ranks 2", "wants --microbatches M");
  refused("1f1b --ranks 0 --microbatches 2", "--ranks wants a number from 1");
  refused("1f1b --ranks 2 --microbatches 99999999999", "--microbatches wants a number");
  refused("interleaved --ranks 4 --microbatches 2", "microbatches: expected at least as many as");
  refused("1f1b --ranks 2 --microbatches 2 --chunks 2", "chunks: expected 1 for this kind");
  refused("interleaved --ranks 4 --microbatches 9 --group 6",
          "a multiple of the group, 6, or at least 4 more (the ranks), got 9, which leaves 3");
  refused("interleaved --ranks 4 --microbatches 7",
          "a multiple of the ranks, 4, got 7, which leaves 3");
  refused("interleved --ranks 4 --microbatches 9", "did you mean interleaved?");
  refused("1F1B --ranks 2 --microbatches 2", "unknown kind 1F1B; did you mean 1f1b?");
  refused("1f1b --ranks 2 --microbatches 2 --format cvs", "did you mean csv?");
  refused("1f1b --ranks 2 --microbatches 2 --costs 1,2", "--costs wants three numbers");
  refused("1f1b --ranks 2 --microbatches 2 --costs 1,2,nan", "--costs wants three numbers");
  refused("1f1b --ranks 2 --microbatches 2 --costs 1,2,3,4", "--costs wants three numbers");
  refused("1f1b --ranks 2 --microbatches 2 --comm -1", "--comm wants a number from 0");
  refused("1f1b --ranks 2 --microbatches 2 --comm", "--comm wants a number from 0, not nothing");
  refused("1f1b --rank 2", "did you mean --ranks?");
  refused("--check /proc/nonexistent/file.csv", "cannot be read");
  refused("--check /dev/null", "/dev/null: has no actions");
  refused("--check /dev/null --format cvs", "did you mean csv?");
  refused("zbv --check /dev/null", "--check takes costs, --format and -o:");
  refused("--check /dev/null --swap", "--check takes costs, --format and -o:");
  const std::string sizes = " --ranks 2 --microbatches 2 ";
  refused("1f1b" + sizes + "--cap 2", "--cap is for zbh2, zbv-greedy and auto, not for 1f1b");
  const auto capped = [&](const std::string& kind, const std::string& enough) {
    const outcome o = run_velo("schedule " + kind + sizes + "--cap 0.1");
    CHECK(o.code == 2);
    CHECK(o.out ==
          "velo: cap: expected room in which an order is found, such as " + enough + ", got 0.1\n");
  };
  capped("zbh2", "1 micro-batch");
  capped("zbv-greedy", "2 micro-batches");
  capped("auto", "1 micro-batch");
  for (const std::string word : {"0", "-1", "none"})
    refused("zbh2" + sizes + "--cap " + word, "--cap wants a number above 0, not " + word);
  refused("1f1b" + sizes + "--sizes 1,2", "--sizes wants five numbers from 0, as in");
  refused("1f1b" + sizes + "--sizes 1,2,3,4,-5", "--sizes wants five numbers from 0, as in");
  refused("zbv" + sizes + "--splits 1", "--splits is for seq1f1b, not for zbv");
  refused("zbv" + sizes + "--group 2", "--group is for interleaved, not for zbv");
  refused("zbv" + sizes + "--overlap", "--overlap is for interleaved, not for zbv");
  refused("zbv" + sizes + "--no-dw-detach", "--no-dw-detach is for dualpipe and dualpipev, not");
  refused("zbv" + sizes + "--extra-warmup", "--extra-warmup is for interleaved, not");
  refused("zbv" + sizes + "--swap", "--swap is for nanopipe, not for zbv");
  refused("1f1b --ranks 2 --microbatches 2 --layout 'Et|xL'", "layout, character 4");
  refused("1f1b --ranks 2 --microbatches 2 --layout 'Et|t|tL'", "layout, character 8: expected 2");
  refused("1f1b --ranks 2 --microbatches 2 --layers 4 --noop-layers 1,x", "--noop-layers wants");
  refused("1f1b --ranks 2 --microbatches 2 --layers 4 --noop-layers 4", "noop_layers");
  refused("ripipe --ranks 2 --microbatches 2 --recompute never", "--recompute wants in-bubble");
  refused("1f1b --ranks 2 --microbatches 2 --recompute in-bubble", "--recompute is for ripipe");
}
