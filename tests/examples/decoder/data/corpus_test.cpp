// Which files count, in which order, and how the text is split.
#include "examples/decoder/data/corpus.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "examples/decoder/data/baseline.hpp"
#include "examples/decoder/failure.hpp"
#include "tests/examples/decoder/temporary.hpp"

using Catch::Matchers::Contains;
using namespace decoder;

TEST_CASE("regular files are found recursively, in path order, without links and duplicates") {
  temporary t;
  const std::string text = some_text(30000, 1), other = some_text(30000, 2);
  put(t / "d/b/two", other);
  put(t / "d/a", text);
  put(t / "d/c-copy", text);
  put(t / "d/empty", "");
  put(t / "outside", some_text(100, 3));
  std::filesystem::create_symlink(t / "outside", t / "d/link");
  std::filesystem::create_directory_symlink(t / "d", t / "d/b/circle");
  ::mkfifo((t / "d/pipe").c_str(), 0600);
  const corpus c = read_corpus({t / "d"}, 64, 1 << 20);
  CHECK(c.files == std::vector<std::string>{t / "d/a", t / "d/b/two"});
  CHECK(c.training.size() + c.validation.size() == 60000);
  CHECK(c.training.substr(0, 4096) == text.substr(0, 4096));
}

TEST_CASE("binary files are skipped and counted, by a zero byte in their first 8 KiB") {
  temporary t;
  const std::string text = some_text(50000);
  const auto with_zero_at = [&](std::size_t at) {
    std::string changed = text.substr(0, 20000) + std::to_string(at);
    changed[at] = '\0';
    return changed;
  };
  put(t / "d/archive.gz", with_zero_at(3));
  put(t / "d/module.pyc", with_zero_at(8191));
  put(t / "d/short.bin", std::string(1, '\0'));
  CHECK_THROWS_WITH(read_corpus({t / "d"}, 64, 1), Contains("no text: all files have a zero byte"));
  CHECK_THROWS_WITH(read_corpus({t / "d/archive.gz"}, 64, 1),
                    Contains("archive.gz: no text: the file has a zero byte"));
  put(t / "d/late", with_zero_at(8192));
  put(t / "d/text", text);
  const corpus c = read_corpus({t / "d"}, 64, 1 << 20);
  CHECK(c.files == std::vector<std::string>{t / "d/late", t / "d/text"});
  CHECK(c.binary_files == 3);
}

TEST_CASE("a path given twice counts once") {
  temporary t;
  put(t / "a", some_text(50000));
  CHECK(read_corpus({t / "a", t / "a", t.path}, 64, 1 << 20).files.size() == 1);
}

TEST_CASE("every tenth block is validation and the rest is joined") {
  const std::string whole = some_text(25 * block_bytes - 100);
  const corpus c = split_text(whole, 1 << 20);
  CHECK(c.validation ==
        whole.substr(9 * block_bytes, block_bytes) + whole.substr(19 * block_bytes, block_bytes));
  CHECK(c.training == whole.substr(0, 9 * block_bytes) +
                          whole.substr(10 * block_bytes, 9 * block_bytes) +
                          whole.substr(20 * block_bytes));
}

TEST_CASE("a bound on validation keeps blocks spread over all of it") {
  const std::string whole = some_text(100 * block_bytes);
  const corpus c = split_text(whole, 2 * block_bytes + 1);
  CHECK(c.validation ==
        whole.substr(9 * block_bytes, block_bytes) + whole.substr(59 * block_bytes, block_bytes));
  CHECK(split_text(whole, 1).validation.size() == block_bytes);
}

TEST_CASE("the checksum notices any change of the text") {
  std::string whole = some_text(50000);
  const auto before = split_text(whole, 1 << 20).crc;
  whole[41000] ^= 1;
  CHECK(split_text(whole, 1 << 20).crc != before);
}

TEST_CASE("missing, empty and short data are refused by name") {
  temporary t;
  CHECK_THROWS_WITH(read_corpus({t / "none"}, 64, 1),
                    Contains(t / "none") && Contains("o such file"));
  CHECK_THROWS_WITH(read_corpus({t.path}, 64, 1), Contains("no text"));
  put(t / "short", some_text(9 * block_bytes));
  CHECK_THROWS_WITH(read_corpus({t.path}, 64, 1), Contains("too short") && Contains("36864"));
  put(t / "short", some_text(9 * block_bytes + 1));
  CHECK_NOTHROW(read_corpus({t.path}, 64, 1));
  CHECK_THROWS_WITH(read_corpus({t.path}, 9 * block_bytes + 1, 1),
                    Contains("too short for a window"));
  ::mkfifo((t / "pipe").c_str(), 0600);
  CHECK_THROWS_WITH(read_corpus({t / "pipe"}, 64, 1),
                    Contains("neither a regular file nor a directory"));
}

TEST_CASE("zlib's bits a byte are those of its own stream") {
  // 100 000 equal bytes deflate to 121 bytes at level 9, a figure of zlib 1.2 that any program
  // shows.
  CHECK(zlib_bits_per_byte(std::string(100000, 'a')) < 0.02);
  const std::string text = some_text(20000);
  const double alone = zlib_bits_per_byte(text);
  CHECK(alone > 1);
  CHECK(alone < 8);
  CHECK(zlib_bits_per_byte(text, text) < 0.2 * alone);
  const std::string a(32768, 'a');  // of no help: the primer's bytes count nowhere
  CHECK(zlib_bits_per_byte(text, a) == Approx(alone).epsilon(0.02));
}

TEST_CASE("documents are files or lines, and every tenth is validation text") {
  std::string whole;
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < 25; ++i) {
    whole.append(i + 1, static_cast<char>('a' + i));
    ends.push_back(whole.size());
  }
  const corpus c = split_documents(whole, ends, 1 << 20);
  CHECK(c.validation == std::string(10, 'j') + std::string(20, 't'));
  CHECK(c.validation_ends == std::vector<std::size_t>{10, 30});
  REQUIRE(c.training_ends.size() == 23);
  CHECK(c.training_ends[0] == 1);
  CHECK(c.training_ends[9] == 45 + 11);
  CHECK(c.training_ends.back() == c.training.size());
  CHECK(c.training.size() + c.validation.size() == whole.size());
  const corpus less = split_documents(whole, ends, 16);
  CHECK(less.validation == std::string(10, 'j'));
  const corpus cut = split_documents(whole, ends, 4);
  CHECK(cut.validation == "jjjj");
  std::vector<std::size_t> others = ends;
  ++others[0];
  CHECK(split_documents(whole, others, 1 << 20).crc != c.crc);
}

TEST_CASE("a line ends behind its newlines, and where its file ends") {
  const std::string text = "\none\ntwo\n\n\nthree|four\n";
  const std::size_t file = text.find('|');
  using ends = std::vector<std::size_t>;
  CHECK(line_ends(text, {file, text.size()}) == ends{1, 5, 11, file, text.size()});
  CHECK(line_ends("", {}).empty());
  CHECK(line_ends("a", {1}) == ends{1});
}

TEST_CASE("a corpus of documents needs ten of them") {
  const temporary t;
  for (int i = 0; i < 9; ++i)
    put(t / ("d" + std::to_string(i)), "line " + std::to_string(i) + "\n");
  CHECK_THROWS_WITH(read_corpus({t.path}, 64, 1, documents::files),
                    Contains("9 files are too few") && Contains("10 are needed"));
  CHECK_THROWS_WITH(read_corpus({t / "d0"}, 64, 1, documents::lines),
                    Contains("1 line is too few"));
  put(t / "d9", "one more\nand another\n");
  const corpus files = read_corpus({t.path}, 64, 1 << 20, documents::files);
  CHECK(files.training_ends.size() == 9);
  CHECK(files.validation == "one more\nand another\n");
  const corpus lines = read_corpus({t.path}, 64, 1 << 20, documents::lines);
  CHECK(lines.training_ends.size() == 10);
  CHECK(lines.validation == "one more\n");
}
