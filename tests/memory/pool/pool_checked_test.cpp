// Mistakes of callers: the checked mode names them with the block that they concern, the fast mode
// refuses them or is unaffected.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/memory/system.hpp"
#include "tests/structs.hpp"

using namespace velo::testing;

namespace {

struct log_lines {
  std::vector<std::string> all;
  static void add(void* user, velo_log_level, const char*, const char* line) {
    static_cast<log_lines*>(user)->all.emplace_back(line);
  }
  bool has(const std::string& text) const {
    for (const std::string& line : all)
      if (line.find(text) != std::string::npos) return true;
    return false;
  }
};

velo_pool_desc logged(log_lines& to, bool checked) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.checked = checked ? 1 : 0;
  desc.log = &log_lines::add;
  desc.log_user = &to;
  return desc;
}

std::string refused(velo_pool pool, void* memory, std::uint64_t bytes) {
  REQUIRE(velo_pool_free(pool, memory, bytes, nullptr) == VELO_ERR_ARGUMENT);
  const call_record info = last_record();
  return info.argument + ": " + info.got;
}

}  // namespace

TEST_CASE("a free of what is no block in use is refused and named, in both modes") {
  for (const bool checked : {false, true}) {
    log_lines log;
    const live_pool pool(logged(log, checked)), other;
    for (const std::uint64_t bytes : {std::uint64_t{100}, 3 * mib}) {
      char* block = pool.take(bytes);
      INFO("checked " << checked << ", bytes " << bytes);
      CHECK(refused(pool, block + 64, bytes) ==
            "memory: byte 64 of a block of " + std::to_string(bytes) + " bytes");
      CHECK(refused(pool, block + 1, bytes) ==
            "memory: byte 1 of a block of " + std::to_string(bytes) + " bytes");
      CHECK(refused(other, block, bytes) == "memory: memory that is not of this pool");
      int local = 0;
      CHECK(refused(pool, &local, 4) == "memory: memory that is not of this pool");
      pool.give(block, bytes);
      CHECK(refused(pool, block, bytes).find("freed before") != std::string::npos);
      CHECK(log.has("freed before"));
      char* again = pool.take(bytes);  // the refusal left the pool as it was
      char* next = pool.take(bytes);
      CHECK(again != next);
      pool.give(again, bytes);
      pool.give(next, bytes);
    }
    CHECK(pool.stats().bytes_live == 0);
    REQUIRE(velo_pool_free(pool, nullptr, 5, nullptr) == VELO_OK);
  }
}

TEST_CASE("a wrong size at free is named in the checked mode, and has no effect in the fast one") {
  const live_pool checked(checked_pool()), fast;
  char* block = checked.take(1000);
  CHECK(refused(checked, block, 1001) == "bytes: 1001");
  CHECK(last_record().expected == "1000, as allocated");
  checked.give(block, 1000);
  block = fast.take(1000);
  fast.give(block, 5);
  CHECK(fast.stats().bytes_live == 0);
}

TEST_CASE("a write beside a block is found at its free and by a check") {
  const live_pool pool(checked_pool());
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}, 2 * mib}) {
    for (const std::int64_t at :
         {std::int64_t{-1}, std::int64_t{-64}, static_cast<std::int64_t>(bytes),
          static_cast<std::int64_t>(bytes) + 63}) {
      char* block = pool.take(bytes);
      const char before = block[at];
      REQUIRE(velo_pool_check(pool) == VELO_OK);
      block[at] = 1;
      INFO("bytes " << bytes << ", byte " << at);
      const std::string where = at < 0 ? std::to_string(-at) + " bytes before the block"
                                       : std::to_string(at - static_cast<std::int64_t>(bytes) + 1) +
                                             " bytes behind the block's last byte";
      CHECK(refused(pool, block, bytes) == "memory: a write " + where);
      CHECK(velo_pool_check(pool) == VELO_ERR_ARGUMENT);
      CHECK(last_record().got == "a write " + where);
      block[at] = before;
      pool.give(block, bytes);
    }
  }
}

TEST_CASE("a write after the free is found by a check and when the block leaves the quarantine") {
  log_lines log;
  const live_pool pool(logged(log, true));
  char* block = pool.take(5000);
  pool.give(block, 5000);
  block[123] = 1;
  const std::string how = "a write to byte 123 of a block of 5000 bytes after its free";
  CHECK(velo_pool_check(pool) == VELO_ERR_ARGUMENT);
  CHECK(last_record().got == how);
  CHECK(log.all.empty());
  for (int i = 0; i < 40; ++i) pool.give(pool.take(mib), mib);  // more than the quarantine holds
  CHECK(log.has(how));
  CHECK(velo_pool_check(pool) == VELO_ERR_ARGUMENT);
}

TEST_CASE("fresh memory is filled, freed memory is filled and not given out again at once") {
  const live_pool pool(checked_pool());
  char* block = pool.take(4096);
  CHECK(static_cast<unsigned char>(block[0]) == 0xa5);
  CHECK(static_cast<unsigned char>(block[4095]) == 0xa5);
  pool.give(block, 4096);
  CHECK(static_cast<unsigned char>(block[0]) == 0xdd);
  char* next = pool.take(4096);
  CHECK(next != block);
  pool.give(next, 4096);
}

TEST_CASE("the quarantine gives way before a request fails") {
  velo_pool_desc desc = checked_pool();
  desc.limit = 4 * mib;
  const live_pool pool(desc);
  for (int i = 0; i < 20; ++i) pool.give(pool.take(3 * mib), 3 * mib);
  CHECK(pool.stats().refused == 0);
}

TEST_CASE("calls on a destroyed pool are refused; blocks in use stay mapped and are named") {
  for (const bool checked : {false, true}) {
    log_lines log;
    const velo_pool_desc desc = logged(log, checked);
    velo_pool pool = nullptr;
    REQUIRE(velo_pool_create(&desc, &pool) == VELO_OK);
    const velo_pool_request request = request_of(3 * mib);
    void* memory = nullptr;
    REQUIRE(velo_pool_allocate(pool, &request, &memory) == VELO_OK);
    velo_pool_destroy(pool);
    CHECK(log.has("destroyed with 1 blocks, 3145728 bytes, in use"));
    static_cast<char*>(memory)[3 * mib - 1] = 1;
    CHECK(velo_pool_free(pool, memory, 3 * mib, nullptr) == VELO_ERR_HANDLE);
    CHECK(last_record().got == "a destroyed pool");
    CHECK(velo_pool_allocate(pool, &request, &memory) == VELO_ERR_HANDLE);
    velo_pool_destroy(pool);
  }
}

TEST_CASE("the two functions of a destroyed pool take back what is in use, and end it") {
  for (const bool checked : {false, true}) {
    const std::int64_t mapped = calls().mapped;
    const velo_pool_desc desc = pool_desc(VELO_POOL_ORDINARY, 0, checked);
    velo_pool pool = nullptr;
    REQUIRE(velo_pool_create(&desc, &pool) == VELO_OK);
    void *take = nullptr, *give = nullptr;
    REQUIRE(velo_pool_functions(pool, &take, &give) == VELO_OK);
    const auto allocate = reinterpret_cast<void* (*)(std::int64_t, std::int32_t, void*)>(take);
    const auto deallocate =
        reinterpret_cast<void (*)(void*, std::int64_t, std::int32_t, void*)>(give);
    void* first = allocate(100, 0, nullptr);
    void* second = allocate(3 << 20, 0, nullptr);
    velo_pool_destroy(pool);
    CHECK(allocate(100, 0, nullptr) == nullptr);
    CHECK(last_record().code == VELO_ERR_HANDLE);
    CHECK(last_record().got == "a destroyed pool");
    deallocate(first, 100, 0, nullptr);
    CHECK(calls().mapped > mapped + 3 * static_cast<std::int64_t>(mib));
    deallocate(second, 3 << 20, 0, nullptr);
    CHECK(calls().mapped == mapped);
    CHECK(velo_pool_check(pool) == VELO_ERR_HANDLE);
  }
}

TEST_CASE("a context that outlives its pool keeps its memory, and the pool ends with it") {
  velo_pool pool = nullptr;
  REQUIRE(velo_pool_create(nullptr, &pool) == VELO_OK);
  const velo_allocator allocator = allocator_of(pool);
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &allocator;
  velo_context context = nullptr;
  REQUIRE(velo_context_create(&desc, &context) == VELO_OK);
  velo_pool_destroy(pool);
  velo_stream stream = nullptr;
  CHECK(velo_context_stream(context, &stream) == VELO_OK);
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  CHECK(allocator.allocate(allocator.user, 64, 64, &cpu, nullptr) == nullptr);
  velo_context_destroy(context);
  CHECK(velo_pool_check(pool) == VELO_ERR_HANDLE);
}
