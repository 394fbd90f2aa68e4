// Capsules: what a divergence leaves, `velo replay-capsule` on it, and on damaged and hostile ones.
#include <sys/resource.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>

#include "tests/child_process.hpp"
#include "tests/ops/replay/wrong_kernel.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tools/velo/run.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

outcome replay(const std::string& words) {
  return run_velo("replay-capsule " + words);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_capsule_refused(const std::string& words, const std::string& reason) {
  check_refused("replay-capsule " + words, reason);
}

std::string only_file(const temporary_folder& in) {
  REQUIRE(in.files() == 1);
  return std::filesystem::directory_iterator(in.path())->path();
}

std::string unpacked(const std::string& file) {
  const gzFile in = gzopen(file.c_str(), "rb");
  REQUIRE(in != nullptr);
  std::string all;
  char part[4096];
  for (int n = 0; (n = gzread(in, part, sizeof part)) > 0;)
    all.append(part, static_cast<std::size_t>(n));
  REQUIRE(gzclose(in) == Z_OK);
  return all;
}

std::string packed(const temporary_folder& in, const std::string& text) {
  std::string file = in.at("made.gz");
  const gzFile out = gzopen(file.c_str(), "wb");
  REQUIRE(gzwrite(out, text.data(), static_cast<unsigned>(text.size())) ==
          static_cast<int>(text.size()));
  REQUIRE(gzclose(out) == Z_OK);
  return file;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  INFO(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The capsule of a wrong sum: its file in `folder`, and the call's record in `cause`.
std::string leave_capsule(const temporary_folder& folder, const std::string& more_config = "") {
  session s(
      1, R"({"check.mode": "all", "check.capsules": ")" + folder.path() + "\"" + more_config + "}");
  small_add call;
  call.args.y = call.args.b;  // in place
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  std::string file = only_file(folder);
  CHECK(last_record().cause == "capsule " + file);
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);  // the second leaves none
  CHECK(has(last_record().cause, "no capsule: the first divergence"));
  CHECK(folder.files() == 1);
  return file;
}

}  // namespace

TEST_CASE("a capsule holds the call as it was found, and runs again") {
  const temporary_folder folder;
  const std::string file = leave_capsule(folder);
  const std::string all = unpacked(file);
  const std::string line = all.substr(0, all.find('\n'));
  CHECK(has(line, R"("op":"add","kernel":"wrong")"));
  CHECK(has(line, R"("name":"y","dtype":"float32","shape":[3,5],"shares":"b")"));
  small_add before;
  CHECK(all.size() == line.size() + 1 + 2 * 60);
  CHECK(all.substr(line.size() + 1) ==
        std::string(reinterpret_cast<const char*>(before.a.data()), 60) +
            std::string(reinterpret_cast<const char*>(before.b.data()), 60));

  check_capsule_refused(file, "one of add's kernels");  // no library has the planted kernel
  const temporary_folder made;
  const std::string honest = packed(made, replaced(all, R"("kernel":"wrong")", R"("kernel":"")"));
  const outcome o = replay(honest);
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(has(o.out, "agrees with the reference"));
  CHECK(has(o.out, "y has other than the recorded bytes"));
  CHECK(has(replay(honest + " --json").out, "\"diverges\": false"));
  CHECK(replay(honest + " --set level=0").code == 0);
}

TEST_CASE("a capsule without data keeps the checksums and says so") {
  const temporary_folder folder, made;
  const std::string all = unpacked(leave_capsule(folder, R"(, "check.data": "off")"));
  CHECK(all.back() == '\n');
  CHECK(has(all, "\"crc32\":"));
  const outcome o = replay(packed(made, replaced(all, R"("kernel":"wrong")", R"("kernel":"")")));
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(has(o.out, "has no elements: all are 0 here"));
  CHECK(has(replay(made.at("made.gz") + " --json").out, "\"data\": false"));
}

TEST_CASE("a capsule that lacks the elements of one tensor names it") {
  const temporary_folder folder, made;
  std::string all =
      replaced(unpacked(leave_capsule(folder)), R"("kernel":"wrong")", R"("kernel":"")");
  all = replaced(all, R"("data":true)", R"("data":false)");  // of a, the first
  all.erase(all.find('\n') + 1, 60);
  const outcome o = replay(packed(made, all));
  INFO(o.out);
  CHECK(o.code == 0);
  CHECK(has(o.out, "has no elements of a: they are 0 here"));
  CHECK_FALSE(has(o.out, "all are 0"));
  CHECK(has(replay(made.at("made.gz") + " --json").out, "\"data\": false"));
}

TEST_CASE("a folder that takes no capsule leaves the report") {
  session s(1, R"({"check.mode": "all", "check.capsules": "/no such folder"})");
  small_add call;
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  const call_record record = last_record();
  INFO(record);
  CHECK(has(record.cause, "no capsule: "));
  CHECK(has(record.cause, "No such file"));
  CHECK(has(record.got, "wrong"));
}

TEST_CASE("a divergence that could leave no capsule lets the next one leave it") {
  const temporary_folder folder;
  const std::string later = folder.at("later");
  session s(1, R"({"check.mode": "all", "check.capsules": ")" + later + "\"}");
  small_add call;
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  CHECK(has(last_record().cause, "No such file"));
  std::filesystem::create_directory(later);
  REQUIRE(run_wrong_add(s, call.args) == VELO_ERR_INTERNAL);
  CHECK(last_record().cause.find("capsule " + later) == 0);
}

TEST_CASE("a capsule that a limit of file sizes cuts ends no process") {
  const temporary_folder folder;
  CHECK(in_child([&] {
          session s(1, R"({"check.mode": "all", "check.capsules": ")" + folder.path() + "\"}");
          const rlimit few{100, 100};
          small_add call;
          if (setrlimit(RLIMIT_FSIZE, &few) != 0) return 1;
          if (run_wrong_add(s, call.args) != VELO_ERR_INTERNAL) return 2;
          if (!has(last_record().cause, "File too large")) return 3;
          return raise(SIGXFSZ) == 0 ? 4 : 5;  // still the host's own
        }) == -1);
  CHECK(folder.files() == 0);
}

TEST_CASE("a capsule runs again where the environment has the settings of the run that left it") {
  const temporary_folder folder, made;
  const std::string all =
      replaced(unpacked(leave_capsule(folder)), R"("kernel":"wrong")", R"("kernel":"")");
  const std::string file = packed(made, all);
  const std::pair<const char*, const char*> variables[] = {{"VELO_CHECK_MODE", "sample"},
                                                           {"VELO_CHECK_CAPSULES", "/tmp"},
                                                           {"VELO_KERNEL_ADD", "reference"}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  const outcome o = replay(file);
  for (const auto& [name, value] : variables) unsetenv(name);
  INFO(o.out);
  CHECK(o.code == 0);
}

TEST_CASE("damaged capsules are refused") {
  const temporary_folder folder, made;
  const std::string file = leave_capsule(folder);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 7)
    check_capsule_refused(made.put("cut.gz", whole.substr(0, size)), "cut.gz: ");
  check_capsule_refused(made.put("cut.gz", whole.substr(0, whole.size() - 1)), "cut.gz: ");
  for (std::size_t at = 10; at < whole.size(); at += 1 + whole.size() / 9) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    check_capsule_refused(made.put("flipped.gz", flipped), "flipped.gz: ");
  }
  check_capsule_refused(made.at("absent.gz"), "cannot be read: No such file");
  check_capsule_refused(made.put("text.gz", unpacked(file)), "no gzip file");
  check_capsule_refused("", "wants one file");
}

TEST_CASE("hostile capsules are refused, whatever they claim") {
  const temporary_folder folder, made;
  const std::string all = replaced(unpacked(leave_capsule(folder)), "\"wrong\"", "\"\"");
  struct change {
    const char *from, *to, *reason;
  };
  const change changes[] = {
      {"\"capsule\":1", "\"capsule\":2", "has format 2"},
      {"\"capsule\":1", "\"capsula\":1", "is no capsule"},
      {"\"op\":\"add\"", "\"op\":\"adds\"", "adds"},
      {"\"kernel\":\"\"", "\"kernel\":\"amx_of_elsewhere\"", "one of add's kernels"},
      {"float32", "float33", "unknown dtype"},
      {"[3,5]", "[3,6]", "but its sizes 72"},
      {"[3,5]", "[3,-5]", "invalid sizes"},
      {"[3,5]", "[3,4611686018427387904,4611686018427387904]", "overflow"},
      {"[3,5]", "[1,1,1,1,1,1,1,3,5]", "invalid sizes"},
      {"[3,5],\"bytes\":60", "[274877906944],\"bytes\":1099511627776", "is not whole"},
      {"[3,5],\"bytes\"", "[3,5],\"strides\":[5],\"bytes\"", "invalid sizes or strides"},
      {"[3,5],\"bytes\"", "[3,5],\"strides\":[-5,1],\"bytes\"", "invalid sizes or strides"},
      {"[3,5],\"bytes\":60", "[3,5],\"strides\":[4611686018427387904,1],\"bytes\":60", "overflow"},
      {"\"modulo64\":", "\"modulo64\":64,\"m\":", "no \"modulo64\" from 0 to 63"},
      {"\"crc32\":", "\"crc\":", "no \"crc32\""},
      {"\"kernel\":\"\",", "", "names no kernel"},
      {"\"outputs\":", "\"results\":", "has no outputs"},
      {"\"crc32\":", "\"crc32\":1,\"c\":", "other bytes than its checksum"},
      {"\"shares\":\"b\"", "\"shares\":\"z\"", "no tensor is called \"z\""},
      {"[3,5],\"shares\"", "[30,50],\"shares\"", "shares memory that does not hold it"},
      {"\"name\":\"a\"", "\"name\":\"aa\"", "aa"},
      {"\"name\":\"a\",\"dtype\"", "\"name\":\"a\",\"handle\":\"a pack\",\"d\"", "does not hold"},
      {"\"name\":\"a\",\"dtype\"", "\"name\":\"a\",\"d\"", "has no value"},
      {"\"outputs\":[{\"name\":\"y\"", "\"outputs\":[{\"name\":\"q\"", "no tensor is called"},
  };
  for (const change& c : changes) {
    INFO(c.from << " -> " << c.to);
    check_capsule_refused(packed(made, replaced(all, c.from, c.to)), c.reason);
  }
  const std::string large =
      replaced(all, "[3,5],\"bytes\":60", "[1099511627776],\"bytes\":4398046511104");
  check_capsule_refused(packed(made, replaced(large, "\"data\":true", "\"data\":false")),
                        "bytes of zeros");
  check_capsule_refused(packed(made, all + "x"), "bytes after its last tensor");
  check_capsule_refused(packed(made, std::string(1 << 20, '[') + "\n"), "is no capsule");
  check_capsule_refused(packed(made, std::string((1 << 24) + 9, ' ')), "first line has no end");
}
