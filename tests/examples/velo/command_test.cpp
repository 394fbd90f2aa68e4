// The velo command, run as a program: what it prints, and how it ends.
#include <jansson.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>

namespace {

struct outcome {
  int code;
  std::string out;  // both streams
};

outcome velo(const std::string& words) {
  const std::string line = std::string(VELO_PROGRAM) + " " + words + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  outcome o{0, ""};
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) o.out.append(buffer, n);
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  o.code = WEXITSTATUS(status);
  return o;
}

using json = std::unique_ptr<json_t, void (*)(json_t*)>;
json parsed(const outcome& o) {
  INFO(o.out);
  REQUIRE(o.code == 0);
  json_error_t error;
  json all(json_loads(o.out.c_str(), 0, &error), [](json_t* node) { json_decref(node); });
  REQUIRE(all != nullptr);
  return all;
}

bool holds(const outcome& o, const char* text) {
  return o.out.find(text) != std::string::npos;
}

void expect_refused(const std::string& words, const char* reason) {
  INFO(words);
  const outcome o = velo(words);
  INFO(o.out);
  CHECK(o.code == 1);
  CHECK(o.out.rfind("velo: ", 0) == 0);
  CHECK(holds(o, reason));
}

}  // namespace

TEST_CASE("help is given for the whole and for each command") {
  const outcome all = velo("--help");
  CHECK(all.code == 0);
  for (const char* name : {"info", "ops", "explain"}) {
    CHECK(holds(all, name));
    const outcome one = velo(std::string(name) + " --help");
    CHECK(one.code == 0);
    CHECK(holds(one, (std::string("usage: velo ") + name).c_str()));
  }
  CHECK(velo("").code == 1);
}

TEST_CASE("info tells the library, the machine and the configuration") {
  const outcome o = velo("info --set isa=scalar --set threads=1 --no-measure");
  CHECK(o.code == 0);
  CHECK(holds(o, "ABI 1.0"));
  CHECK(holds(o, "rms_norm"));
  CHECK(!holds(o, "Gflop/s"));
  const json all = parsed(velo("info --json --no-measure --set isa=scalar"));
  CHECK(std::string(json_string_value(json_object_get(all.get(), "isa"))) == "scalar");
  CHECK(json_integer_value(json_object_get(all.get(), "threads")) >= 1);
  CHECK(json_array_size(json_object_get(all.get(), "operators")) >= 10);
  CHECK(json_is_array(json_object_get(all.get(), "transports")));
  bool found = false;
  json_t* rows = json_object_get(all.get(), "configuration");
  for (std::size_t i = 0; i < json_array_size(rows); ++i) {
    json_t* row = json_array_get(rows, i);
    if (std::string(json_string_value(json_object_get(row, "key"))) != "isa") continue;
    found = true;
    CHECK(std::string(json_string_value(json_object_get(row, "origin"))) == "code");
  }
  CHECK(found);
}

TEST_CASE("info measures rates of work and of memory, for one thread and for all") {
  const json all = parsed(velo("info --json"));
  json_t* limits = json_object_get(all.get(), "limits");
  REQUIRE(json_array_size(limits) >= 1);
  for (std::size_t i = 0; i < json_array_size(limits); ++i)
    for (const char* name : {"f32_gflops", "bf16_gflops", "read_gbytes", "copy_gbytes"})
      CHECK(json_real_value(json_object_get(json_array_get(limits, i), name)) > 0.01);
  CHECK(json_integer_value(json_object_get(json_array_get(limits, 0), "threads")) == 1);
}

TEST_CASE("the limits info shows are the machine's, not those of velo's operators") {
  const auto f32 = [](const char* words) {
    const json all = parsed(velo(words));
    json_t* one = json_array_get(json_object_get(all.get(), "limits"), 0);
    return json_real_value(json_object_get(one, "f32_gflops"));
  };
  // Level 0 multiplies by plain loops, many times slower.
  CHECK(f32("info --json --set level=0") > 0.5 * f32("info --json"));
}

TEST_CASE("ops lists all operators, and one in full under any of its names") {
  const outcome all = velo("ops");
  CHECK(all.code == 0);
  CHECK(holds(all, "matmul"));
  CHECK(holds(all, "reference"));
  const outcome one = velo("ops npu_rms_norm");
  CHECK(one.code == 0);
  CHECK(one.out.rfind("rms_norm", 0) == 0);
  CHECK(holds(one, "1e-06, >= 0"));
  const json list = parsed(velo("ops --json"));
  CHECK(json_array_size(list.get()) >= 10);
  const json described = parsed(velo("ops rms_norm --json"));
  CHECK(std::string(json_string_value(json_object_get(described.get(), "name"))) == "rms_norm");
}

TEST_CASE("explain shows kernels with reasons, and the outputs") {
  const outcome o =
      velo("explain rms_norm 'x=f32[8,4096]' 'gamma=f32[4096]' epsilon=1e-5 --set isa=scalar");
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(holds(o, "needs an instruction set"));
  CHECK(holds(o, "runs"));
  CHECK(holds(o, "f32[8,4096]"));
  const json all = parsed(velo("explain rms_norm 'x=bf16[2,3,64]' 'gamma=f32[64]' --json"));
  json_t* outputs = json_object_get(all.get(), "outputs");
  REQUIRE(json_array_size(outputs) >= 1);
  CHECK(std::string(json_string_value(json_object_get(json_array_get(outputs, 0), "shape"))) ==
        "bf16[2,3,64]");
  CHECK(json_array_size(json_object_get(all.get(), "kernels")) >= 2);
}

TEST_CASE("explain takes enumerators, truth values and packs") {
  CHECK(velo("explain rotary_position_embedding 'x=f32[1,8,2,64]' 'cos=f32[1,8,1,64]' "
             "'sin=f32[1,8,1,64]' mode=interleaved")
            .code == 0);
  const outcome o =
      velo("explain matmul 'a=f32[512,64]' 'packed=pack:f32[64,32]' transpose_a=false");
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(holds(o, "f32[512,32]"));
}

TEST_CASE("no kernel that serves is an outcome of its own") {
  const outcome o = velo(
      "explain rms_norm 'x=f32[8,64]' 'gamma=f32[64]' --set isa=scalar --set kernel.rms_norm=avx2");
  CHECK(o.code == 2);
  CHECK(holds(o, "no kernel of rms_norm serves"));
}

TEST_CASE("input that makes no sense is refused with the reason") {
  expect_refused("inform", "unknown command inform");
  expect_refused("info please", "please");
  expect_refused("info --loud", "--loud");
  expect_refused("info --set isa", "key=value");
  expect_refused("info --set isa=mmx", "mmx");
  expect_refused("info --set colour=red", "colour");
  expect_refused("ops no_such_op", "no_such_op");
  expect_refused("explain", "operator's name");
  expect_refused("explain no_such_op", "no_such_op");
  expect_refused("explain rms_norm x", "field=value");
  expect_refused("explain rms_norm 'z=f32[4]'", "rms_norm has no such field; it has x, gamma, y");
  expect_refused("explain rms_norm 'x=f33[4]'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[4'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[4,x]'", "expected a tensor");
  expect_refused("explain rms_norm 'x=f32[8,64]' 'gamma=f32[64]' epsilon=tiny",
                 "expected a number");
  expect_refused("explain rms_norm 'x=f32[8,64]' 'gamma=f32[63]'", "args.gamma");
  expect_refused("explain rms_norm 'x=f32[8,64]'", "args.gamma");
  expect_refused("explain matmul 'a=f32[512,64]' packed=f32", "expected a pack");
}
