// velo place, velo replay and velo swap-bench, run as programs: files in, files out, exit codes.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

namespace {

struct folder : velo::testing::temporary_folder {
  std::string operator/(const std::string& file) const { return at(file); }
  std::string write(const std::string& text) const { return put("in.csv", text); }
  std::string read(const char* file) const { return contents_of(at(file)); }
};

// Standard error goes to the folder's file `errors`.
outcome run(const folder& in, const std::string& words) {
  return run_velo(words, in / "errors");
}

const std::string rows = "id,lower,upper,size\nb7,0,4,64\nx,2,6,128\nlast,6,9,100\n";
const std::string log_rows =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "0,0,allocate,0x1,1048576,0\n"
    "0,1,allocate,0x2,3000000,0\n"
    "0,2,free,0x1,1048576,0\n"
    "0,3,allocate,0x3,100,0\n";

}  // namespace

TEST_CASE("place writes the rows in their order, with offsets") {
  const folder in;
  const outcome o = run(in, "place " + in.write(rows) + " --capacity 192");
  CHECK(o.code == 0);
  const bool low =
      o.out == "id,lower,upper,size,offset\nb7,0,4,64,0\nx,2,6,128,64\nlast,6,9,100,0\n";
  const bool high = o.out.find("b7,0,4,64,128\nx,2,6,128,0\n") != std::string::npos;
  INFO(o.out);
  CHECK((low || high));
  CHECK(in.read("errors").empty());
}

TEST_CASE("place writes to a file and draws a picture") {
  const folder in;
  const outcome o = run(in, "place " + in.write(rows) + " --capacity 192 --time 1 --threads 2 -o " +
                                (in / "out.csv") + " --svg " + (in / "picture.svg"));
  CHECK(o.code == 0);
  CHECK(o.out == "3 buffers, height 192, lower bound 192\n");
  CHECK(in.read("out.csv").rfind("id,lower,upper,size,offset\nb7,0,4,64,", 0) == 0);
  CHECK(in.read("picture.svg").find("b7: 64 bytes at") != std::string::npos);
}

TEST_CASE("an output may have the longest name that its folder takes, and no longer one") {
  const folder in;
  const std::string longest = in / std::string(255, 'n');
  const std::string words = "place " + in.write(rows) + " --capacity 192 -o ";
  CHECK(run(in, words + longest).code == 0);
  CHECK(std::remove(longest.c_str()) == 0);
  CHECK(run(in, words + longest + 'n').code != 0);
  CHECK(in.read("errors").find("cannot be written: File name too long") != std::string::npos);
}

TEST_CASE("place without a capacity finds the lowest height") {
  const folder in;
  for (const char* capacity : {"", " --capacity 0"}) {
    INFO(capacity);
    const outcome o = run(in, "place " + in.write(rows) + " -o " + (in / "out.csv") + capacity);
    CHECK(o.code == 0);
    CHECK(o.out == "3 buffers, height 192, lower bound 192\n");
  }
}

TEST_CASE("place refuses threads that velo has not, and says how many it may be") {
  const folder in;
  for (const char* threads : {"0", "65", "100"}) {
    INFO(threads);
    CHECK(run(in, "place " + in.write(rows) + " --capacity 192 --threads " + threads).code == 1);
    CHECK(in.read("errors").rfind("velo: --threads wants a number from 1 to 64", 0) == 0);
  }
}

TEST_CASE("place ends with 2 and the numbers when it does not fit") {
  const folder in;
  const outcome o =
      run(in, "place " + in.write(rows) + " --capacity 191 --time 0.1 -o " + (in / "out.csv"));
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  const json numbers = parsed(in.read("errors"));
  CHECK(integer_of(numbers, "height") == 192);
  CHECK(integer_of(numbers, "lower_bound") == 192);
  CHECK(integer_of(numbers, "capacity") == 191);
  CHECK(in.read("out.csv").empty());
  std::ofstream(in / "out.csv") << "earlier";
  CHECK(run(in, "place " + in.write(rows) + " --capacity 191 --time 0 -o " + (in / "out.csv") +
                    " --svg " + (in / "picture.svg"))
            .code == 2);
  CHECK(in.read("out.csv") == "earlier");
  CHECK(in.read("picture.svg").find("b7: 64 bytes at") != std::string::npos);
}

TEST_CASE("bad input ends with 1 and is named with file, line and column") {
  const folder in;
  const auto refused = [&](const std::string& text, const std::string& reason) {
    INFO(text);
    CHECK(run(in, "place " + in.write(text) + " --capacity 1000").code == 1);
    INFO(in.read("errors"));
    CHECK(in.read("errors").rfind("velo: " + (in / "in.csv") + ": " + reason, 0) == 0);
  };
  refused("id,lower,upper,size\na,0,5,9\na,7,9,9\n", "line 3, column 1: expected an id");
  refused("id,lower,upper,size\r\na,5,5,9\r\n", "line 2, column 5: expected upper above lower");
  refused("id,lower,upper,size\na,0,5,0\n", "line 2, column 7");
  refused("id,lower,upper,size\na,0,5,1001\n",
          "line 2, column 7: expected an integer from 1 to 1000, the capacity");
  refused("id,lower,size\na,0,5\n",
          "line 1, column 1: expected the columns id, lower, upper and size; upper is missing");
  refused("", "line 1, column 1");
  for (const char* words :
       {"place", "place /nowhere/a.csv --capacity 9", "place x.csv", "place x.csv --capacity -1",
        "place x.csv --capacity 9 --time soon", "place x.csv --capacity 9 --threads 0", "replay",
        "replay /nowhere/a.csv", "replay x.csv --pool other"}) {
    INFO(words);
    CHECK(run(in, words).code == 1);
    CHECK(in.read("errors").rfind("velo: ", 0) == 0);
  }
}

TEST_CASE("place says when it cannot write what it found") {
  const folder in;
  CHECK(run(in, "place " + in.write(rows) + " --capacity 192 -o /dev/full").code == 1);
  CHECK(in.read("errors").find("/dev/full: cannot be written: exists and is no regular file") !=
        std::string::npos);
  CHECK(run(in, "place " + in.write(rows) + " --capacity 192 > /dev/full").code == 1);
}

TEST_CASE("replay tells what each pool reserves for a trace") {
  const folder in;
  const std::string trace = in.write(log_rows);
  for (const char* pool : {"velo", "plan", "model"}) {
    INFO(pool);
    const outcome o = run(in, "replay " + trace + " --json --pool " + pool);
    REQUIRE(o.code == 0);
    const json all = parsed(o.out);
    CHECK(integer_of(all, "peak_live") == 1048576 + 3000320);
    CHECK(integer_of(all, "peak_reserved") >= integer_of(all, "peak_live"));
    CHECK(number_of(all, "fragmentation") ==
          Approx(1 - double(1048576 + 3000320) / double(integer_of(all, "peak_reserved"))));
    CHECK(number_of(all, "ns_per_op") > 0);
  }
  // 1 MiB is small: half of a segment of 2 MiB. 3 MB take a segment of 20 MiB.
  const json model = parsed(run(in, "replay " + trace + " --json --pool model").out);
  CHECK(integer_of(model, "peak_reserved") == 22 << 20);
  for (const std::string pool : {"velo", "plan", "model"}) {
    const std::string result = run(in, "replay " + trace + " --pool " + pool).out;
    CHECK(result.find("fragmentation") != std::string::npos);
    CHECK((result.find("per operation") != std::string::npos) ==
          (pool != "model"));  // a model takes none
  }
}

TEST_CASE("replay tells amounts in a unit that shows them") {
  const folder in;
  const std::string head = "Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,0x1,";
  const auto result = [&](const char* size) {
    return run(in, "replay " + in.write(head + size + ",0\n") + " --pool plan").out;
  };
  CHECK(result("100").find(" 512 bytes\n") != std::string::npos);
  CHECK(result("100").find(" 4.0 KiB\n") != std::string::npos);  // a page
  CHECK(result("3000000").find(" 2.9 MiB\n") != std::string::npos);
}

TEST_CASE("replay names the row of a free without an allocation") {
  const folder in;
  const std::string trace = in.write(log_rows + "0,4,free,0x9,100,0\n");
  CHECK(run(in, "replay " + trace).code == 1);
  CHECK(in.read("errors").find("line 6, column 10: expected a pointer that is allocated") !=
        std::string::npos);
}

TEST_CASE("replay names the row of what no memory has room for") {
  const folder in;
  const std::string head = "Thread,Time,Action,Pointer,Size,Stream\n\r\n0,0,allocate,0x1,600,0\n";
  const auto refused = [&](const std::string& row, const std::string& pool) {
    CHECK(run(in, "replay " + in.write(head + row) + " --pool " + pool).code == 1);
    return in.read("errors");
  };
  const std::string place = "velo: " + (in / "in.csv") + ": line 4: ";
  for (const char* pool : {"velo", "plan", "model"}) {
    const std::string all = refused("0,1,allocate,0x2,9223372036854775000,0\n", pool);
    CHECK(all == place +
                     "9223372036854775296 bytes: with the sizes before it 2^63 or more, rounded "
                     "up to 512\n");
  }
  const std::string much = "0,1,allocate,0x2,4611686018427387904,0\n";
  CHECK(refused(much, "velo").rfind(place + "4611686018427387904 bytes: ", 0) == 0);
  CHECK(refused(much, "plan") == "velo: " + (in / "in.csv") +
                                     ": the plan's 4611686018427392000 bytes: Cannot allocate "
                                     "memory\n");
  CHECK(run(in, "replay " + in.write(head + much) + " --pool model").code == 0);
}

TEST_CASE("an empty trace reserves nothing") {
  const folder in;
  const std::string trace = in.write("Thread,Time,Action,Pointer,Size,Stream\n");
  for (const char* pool : {"velo", "plan", "model"}) {
    const outcome o = run(in, "replay " + trace + " --json --pool " + pool);
    REQUIRE(o.code == 0);
    CHECK(integer_of(parsed(o.out), "peak_live") == 0);
    CHECK(integer_of(parsed(o.out), "peak_reserved") == 0);
  }
}

TEST_CASE("swap-bench measures memory and a folder's files, and leaves nothing there") {
  const folder in;
  const std::string words = "swap-bench " + (in / "") + " --size 1000000 --block 65536 --time 0";
  const outcome o = run(in, words + " --depth 3 --json");
  REQUIRE(o.code == 0);
  const json all = parsed(o.out);
  CHECK(integer_of(all, "bytes") == 1000000);
  CHECK(integer_of(all, "block") == 65536);
  CHECK(integer_of(all, "depth") == 3);
  const json_t* found = json_object_get(all.get(), "rows");
  REQUIRE(json_array_size(found) == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const json_t* row = json_array_get(found, i);
    CHECK(number_of(row, "write_gb_s") > 0);
    CHECK(number_of(row, "read_gb_s") > 0);
    const bool checksums = json_is_true(json_object_get(row, "checksums"));
    CHECK((number_of(row, "checksum_share_read") > 0) == checksums);
  }
  const auto engine = [&](std::size_t row) {
    return text_of(json_array_get(found, row), "engine");
  };
  CHECK(engine(0) == "memcpy");
  CHECK(engine(1) == "copy");
  CHECK((engine(2) == "io_uring" || engine(2) == "threads"));
  CHECK(engine(5) == "threads");
  const outcome table = run(in, words);
  CHECK(table.code == 0);
  CHECK(table.out.find("write GB/s") != std::string::npos);
}

TEST_CASE("swap-bench names the folder that it cannot use") {
  const folder in;
  CHECK(run(in, "swap-bench " + (in / "none")).code == 1);
  CHECK(in.read("errors").find(in / "none") != std::string::npos);
  CHECK(run(in, "swap-bench").code == 1);
  CHECK(run(in, "swap-bench " + (in / "") + " --size 1000000000000000000").code == 1);
  CHECK(in.read("errors").rfind(
            "velo: --size 1000000000000000000: no memory for two objects of it: expected at most ",
            0) == 0);
  struct rlimit files {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &files) == 0);
  const struct rlimit small = {1 << 16, files.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const int code = run(in, "swap-bench " + (in / "") + " --size 1000000 --time 0").code;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &files) == 0);
  CHECK(code == 1);
  CHECK(in.read("errors").rfind("velo: " + (in / "") + ": expected ", 0) == 0);
  CHECK(in.read("errors").find(": File too large\n") != std::string::npos);
  CHECK(run(in, "swap-bench " + (in / "") + " --depth 1000 --size 4096").code == 1);
  CHECK(run(in, "swap-bench " + (in / "") + " --block 0").code == 1);
}
