// The two sides of a rendezvous, over a socket that keeps messages apart.
#include "comm/transport/shm/rendezvous.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "comm/transport/rendezvous_words.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/open_place.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"
#include "core/handle/failure.hpp"
#include "core/host/clock.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

constexpr char magic[8] = {'v', 'e', 'l', 'o', ' ', 's', 'h', 'm'};
constexpr char release[] = VELO_RELEASE;

// By how much a rank that has met rank 0 outwaits its own deadline, to hear who is missing: both
// begin to wait at about the same time.
constexpr std::int64_t patience_ns = 100000000;

constexpr std::uint64_t layout =
    sizeof(rank_state) << 40 | sizeof(channel) << 20 | (sizeof(area_head) + sizeof(message_head));

[[noreturn]] void fail_peer(int rank, const char* expected, const char* got) {
  core::failure f;
  f.code = VELO_ERR_PEER;
  f.rank = rank;
  core::copy_text(f.argument, sizeof f.argument, "desc.name");
  core::copy_text(f.expected, sizeof f.expected, expected);
  core::copy_text(f.got, sizeof f.got, got);
  throw f;
}

// Ends a text that another process sent, and replaces control characters, which a terminal would
// obey: those of ASCII, and U+0080 to U+009F.
template <std::size_t size>
void make_printable(char (&text)[size]) {
  text[size - 1] = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t at = 0; byte(at) != 0; ++at) {
    const bool is_control = byte(at) < 0x20 || byte(at) == 0x7f;
    const bool begins_control = byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0;
    if (is_control || begins_control) text[at] = '?';
  }
}

descriptor own_process() {
  descriptor mine(open_process(getpid()));
  if (!mine) fail_io("a descriptor of this process", errno);
  return mine;
}

std::uint64_t new_identity() {
  std::uint64_t made = 0;
  if (getrandom(&made, sizeof made, 0) != sizeof made) fail_io("random bytes", errno);
  return made;
}

hello hello_of(const meeting_place& at) {
  hello mine{};
  std::memcpy(mine.magic, magic, sizeof magic);
  core::copy_text(mine.release, sizeof mine.release, release);
  mine.rank = at.rank;
  mine.size = at.size;
  mine.layout = layout;
  mine.lends = at.lends == nullptr ? 0 : at.lends->size();
  return mine;
}

// When to tell of ranks that are missing.
class reminder {
 public:
  explicit reminder(const meeting_place& at) : at_(at) {}

  template <class Missing>
  void look(Missing&& missing) {
    const std::int64_t waited = core::now_ns() - begin_;
    if (!at_.remind || waited < next_) return;
    at_.remind(missing(), waited);
    next_ += every_ns;
  }

 private:
  static constexpr std::int64_t first_ns = 5'000'000'000, every_ns = 30'000'000'000;

  const meeting_place& at_;
  const std::int64_t begin_ = core::now_ns();
  std::int64_t next_ = first_ns;
};

// Rank 0: all who came.
class host {
 public:
  explicit host(const meeting_place& at)
      : at_(at), reminder_(at), until_(deadline::after(at.timeout_ns, [this] { glance(); })) {
    open_.emplace(at.name);
    for (int rank = 0; rank < at.size; ++rank) guests_.emplace_back();
    guests_[0].process = own_process();
  }

  // Whatever goes wrong here, those that came learn of it.
  company gather() {
    try {
      await_all();
      return seat();
    } catch (const not_there& gave_up) {
      welcome word{};  // no refusal: each has a deadline of its own, by which rank 0 may call again
      word.missing = gave_up.places;
      for (const guest& one : guests_)
        if (one.line) send_packet(one.line.get(), &word, sizeof word, nullptr, 0);
      throw;
    } catch (...) {
      const core::failure why = core::current_failure();
      const bool own = why.rank < 0;  // rank 0 itself has not what it needs
      const text got("rank 0 with: %s", why.cause);
      for (const guest& one : guests_)
        if (one.line)
          refuse(one.line.get(), own ? 0 : why.rank, why.expected, own ? got.buffer : why.got);
      throw;
    }
  }

  host(const host&) = delete;  // the deadline knows where it is
  host& operator=(const host&) = delete;

 private:
  void glance() {
    if (at_.glance) at_.glance();
    reminder_.look([&] { return missing_ranks(); });
  }

  struct guest {
    descriptor line, process;
    std::vector<descriptor> lent;
    bool has_gone() const { return line && is_closed(line.get()); }
  };

  // Somebody who connected and has not said who it is. A rank that is stopped meanwhile comes
  // again.
  struct stranger {
    descriptor line;
    std::int64_t until_ns;
  };
  static constexpr std::int64_t greeting_ns = 1'000'000'000;
  static constexpr std::size_t most_strangers = 256;

  void await_all() {
    rank_set missing = missing_ranks();
    while (missing.lowest() >= 0) {
      std::vector<pollfd> lines{{open_->listening(), POLLIN, 0}};
      for (const stranger& one : strangers_) lines.push_back({one.line.get(), POLLIN, 0});
      const bool some = await_readable(lines.data(), lines.size(), until_) > 0;
      if (!some && until_.is_over()) throw not_there{missing};
      for (std::size_t i = strangers_.size(); some && i-- > 0;)
        if (lines[i + 1].revents != 0) admit(forget_stranger(i));
      if (lines[0].revents != 0) accept_next();
      while (!strangers_.empty() && strangers_.front().until_ns <= core::now_ns())
        forget_stranger(0);
      missing = missing_ranks();
    }
    strangers_.clear();
  }

  // Descriptors that silent strangers hold are taken back where they are needed.
  void accept_next() {
    descriptor coming = accept_now(open_->listening());
    const bool full = !coming && (errno == EMFILE || errno == ENFILE);
    if (full && strangers_.empty()) fail_io("the next rank", errno);
    if (!coming && !full && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
      fail_io("the next rank", errno);
    if (full || strangers_.size() == most_strangers) forget_stranger(0);
    if (coming && is_own_user(coming.get()))
      strangers_.push_back({std::move(coming), core::now_ns() + greeting_ns});
  }

  descriptor forget_stranger(std::size_t at) {
    descriptor line = std::move(strangers_[at].line);
    strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(at));
    return line;
  }

  // Those that have not come, or have gone again since they waited no longer. Of a process that
  // ended the others learn sooner in the group.
  rank_set missing_ranks() const {
    rank_set missing;
    for (int rank = 0; rank < at_.size; ++rank) {
      const guest& one = guests_[static_cast<std::size_t>(rank)];
      if (!one.process || (one.has_gone() && !has_ended(one.process.get()))) missing.add(rank);
    }
    return missing;
  }

  // Who says nothing that a rank says is sent away; a rank of ours that is not as it should be ends
  // the rendezvous for all. No number is repeated to others before it is known to be one of a rank.
  void admit(descriptor line) {
    hello theirs{};
    std::vector<descriptor> handed;
    bool lost = false;
    if (!receive(line.get(), &theirs, sizeof theirs, handed, until_, least_hello, &lost) ||
        std::memcmp(theirs.magic, magic, sizeof magic) != 0)
      return;
    make_printable(theirs.release);
    if (theirs.size < 1 || theirs.size > most_ranks || theirs.rank < 0 ||
        theirs.rank >= theirs.size)
      return refuse(line.get(), -1, text("a rank of 1 to %d ranks", most_ranks),
                    text("rank %d of %d", theirs.rank, theirs.size));
    if (std::strcmp(theirs.release, release) != 0 || theirs.layout != layout)
      end_by(line, theirs.rank, text("ranks of velo %s", release),
             text("rank %d with velo %s", theirs.rank, theirs.release));
    if (theirs.size != at_.size || theirs.rank < 1)
      end_by(line, theirs.rank, text("ranks 1 to %d of %d", at_.size - 1, at_.size),
             text("rank %d of %d", theirs.rank, theirs.size));
    const bool no_room = lost && handed.size() < 1 + theirs.lends;
    if (theirs.lends > most_lent_files || (!no_room && handed.size() != 1 + theirs.lends))
      return refuse(line.get(), theirs.rank,
                    "a descriptor of its process, and of each file it lends",
                    text("%zu descriptors", handed.size()));
    guest& place = guests_[static_cast<std::size_t>(theirs.rank)];
    if (place.process && !place.has_gone())
      return refuse(line.get(), theirs.rank, "each rank once", text("rank %d again", theirs.rank));
    place.line = std::move(line);
    if (no_room)
      fail_io("a descriptor of each rank's process, and of each file that it lends", EMFILE);
    place.process = std::move(handed[0]);
    handed.erase(handed.begin());
    place.lent = std::move(handed);
    welcome receipt{};
    receipt.kind = is_receipt;
    send_packet(place.line.get(), &receipt, sizeof receipt, nullptr, 0);
  }

  static void refuse(int line, int rank, const char* expected, const char* got) {
    welcome no{};
    no.kind = is_refusal;
    no.rank = rank;
    core::copy_text(no.expected, sizeof no.expected, expected);
    core::copy_text(no.got, sizeof no.got, got);
    send_packet(line, &no, sizeof no, nullptr, 0);
  }
  [[noreturn]] static void end_by(const descriptor& line, int rank, const char* expected,
                                  const char* got) {
    refuse(line.get(), rank, expected, got);
    fail_peer(rank, expected, got);
  }

  // Who came is met from here on: whoever calls by this name is at another rendezvous. That a rank
  // is gone again, the others find in the group.
  company seat() {
    open_.reset();
    company all;
    all.slot_bytes = at_.slot_bytes;
    all.identity = new_identity();
    all.memory = make_memory();
    std::vector<int> processes;
    for (guest& one : guests_) processes.push_back(one.process.get());
    welcome yes{};
    yes.slot_bytes = at_.slot_bytes;
    yes.identity = all.identity;
    const int memory = all.memory.get();
    for (int rank = 1; rank < at_.size; ++rank) {
      const int line = guests_[static_cast<std::size_t>(rank)].line.get();
      send_packet(line, &yes, sizeof yes, &memory, 1);
      for (std::size_t first = 0; first < processes.size(); first += most_descriptors)
        send_packet(line, "+", 1, processes.data() + first,
                    std::min(most_descriptors, processes.size() - first));
      hand_on_lent(rank, line);
    }
    all.lent.emplace_back();
    all.lends = lends();
    for (guest& one : guests_) {
      all.processes.push_back(std::move(one.process));
      if (!one.lent.empty()) all.lends = true;
      if (&one != &guests_[0]) all.lent.push_back(std::move(one.lent));
    }
    return all;
  }

  bool lends() const { return at_.lends != nullptr && !at_.lends->empty(); }

  // To a rank what each other lends; then a word of none, which says how many others lend. A rank
  // that is gone is found in the group.
  void hand_on_lent(int to, int line) const {
    std::int32_t lenders = 0;
    const auto send = [&](const lender& word, const std::vector<int>& files) {
      if (!send_packet(line, &word, sizeof word, files.data(), files.size()) && errno != EPIPE &&
          errno != ECONNRESET)
        fail_io("to hand on the files that ranks lend", errno);
    };
    for (int rank = 0; rank < at_.size; ++rank) {
      std::vector<int> files;
      if (rank == 0 && lends())
        for (const lent_file& one : *at_.lends) files.push_back(one.file.get());
      for (const descriptor& one : guests_[static_cast<std::size_t>(rank)].lent)
        files.push_back(one.get());
      if (rank == to || files.empty()) continue;
      send({rank, static_cast<std::int32_t>(files.size())}, files);
      ++lenders;
    }
    send({-1, lenders}, {});
  }

  // Of a size that nobody changes any more, and taken from the system now: a page that is not there
  // later would end the process that touches it.
  descriptor make_memory() const {
    descriptor memory(memfd_create("velo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) fail_io("a file in memory", errno);
    const auto bytes = static_cast<off_t>(shared_area::bytes_for(at_.size, at_.slot_bytes));
    int refused = ftruncate(memory.get(), bytes) != 0 ? errno : 0;
    const auto needed = static_cast<off_t>(shared_area::needed_for(at_.size, at_.slot_bytes));
    if (refused == 0) refused = posix_fallocate(memory.get(), 0, needed);
    if (refused != 0)
      fail(VELO_ERR_MEMORY, "desc.buffer",
           text("%lld bytes of shared memory", static_cast<long long>(bytes)), "no more",
           std::strerror(refused));
    fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return memory;
  }

  const meeting_place& at_;
  reminder reminder_;
  const deadline until_;
  std::optional<open_place> open_;
  std::vector<guest> guests_;
  std::vector<stranger> strangers_;  // in the order in which they came
};

// Any other rank.
class visitor {
 public:
  explicit visitor(const meeting_place& at)
      : at_(at),
        reminder_(at),
        until_(deadline::after(at.timeout_ns, [this] { glance(); })),
        answered_by_(deadline::after(
            at.timeout_ns > INT64_MAX - patience_ns ? at.timeout_ns : at.timeout_ns + patience_ns)),
        process_(own_process()) {
    missing_.add(0);
  }
  visitor(const visitor&) = delete;  // the deadline knows where it is
  visitor& operator=(const visitor&) = delete;

  company join() {
    welcome answer{};
    std::vector<descriptor> handed;
    while (!knock(answer, handed)) {
      if (until_.is_over()) throw not_there{missing_};
      until_.glance();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    make_printable(answer.expected);
    make_printable(answer.got);
    if (answer.kind == is_refusal)
      fail_peer(answer.rank >= 0 && answer.rank < most_ranks ? answer.rank : -1, answer.expected,
                answer.got);
    company all;
    if (handed.empty()) fail_io("a descriptor of the group's memory", EMFILE);
    all.memory = std::move(handed[0]);
    require_area(all.memory, answer.slot_bytes);
    all.slot_bytes = answer.slot_bytes;
    all.identity = answer.identity;
    const auto size = static_cast<std::size_t>(at_.size);
    while (all.processes.size() < size) {
      char plus;
      handed.clear();
      if (!receive(line_.get(), &plus, 1, handed, answered_by_))
        fail_peer(0, "rank 0 until all have come", "rank 0 gone");
      if (handed.size() != std::min(most_descriptors, size - all.processes.size()))
        fail_io("a descriptor of each rank's process", EMFILE);
      for (descriptor& one : handed) all.processes.push_back(std::move(one));
    }
    take_lent(all);
    return all;
  }

 private:
  void glance() {
    if (at_.glance) at_.glance();
    reminder_.look([&] { return missing_; });
  }

  // That every place of the area is there, and stays.
  void require_area(const descriptor& memory, std::uint64_t slot_bytes) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    struct stat is {};
    const bool fits =
        slot_bytes % page == 0 && slot_bytes <= most &&
        slot_bytes >= shared_area::least_slot(at_.size) && fstat(memory.get(), &is) == 0 &&
        static_cast<std::uint64_t>(is.st_size) == shared_area::bytes_for(at_.size, slot_bytes) &&
        (fcntl(memory.get(), F_GET_SEALS) & F_SEAL_SHRINK) != 0;
    if (!fits)
      fail_peer(0, "memory of the size that rank 0 names, which stays so",
                text("slots of %llu in %lld bytes", static_cast<unsigned long long>(slot_bytes),
                     static_cast<long long>(is.st_size)));
  }

  void take_lent(company& all) {
    all.lent.resize(static_cast<std::size_t>(at_.size));
    all.lends = at_.lends != nullptr && !at_.lends->empty();
    for (std::int32_t lenders = 0;; ++lenders) {
      lender word{};
      std::vector<descriptor> handed;
      if (!receive(line_.get(), &word, sizeof word, handed, answered_by_))
        fail_peer(0, "rank 0 until all have come", "rank 0 gone");
      if (word.rank < 0 && word.files == lenders) return;
      if (word.rank < 0 || word.rank >= at_.size || handed.empty() ||
          handed.size() != static_cast<std::size_t>(word.files))
        fail_io("a descriptor of each file that a rank lends", EMFILE);
      all.lent[static_cast<std::size_t>(word.rank)] = std::move(handed);
      all.lends = true;
    }
  }

  // Whether the listener says something. A process that is no rank may have listened before rank 0
  // took the path: a rank without an answer leaves when another socket stands there. A rank that
  // rank 0 has admitted has its receipt by then, since rank 0 sends it before it gives up the path.
  bool is_answered() {
    pollfd line{line_.get(), POLLIN, 0};
    while (await_readable(&line, 1, answered_by_) == 0) {
      const ino_t now = number_at(knocked_at_.path);
      const bool is_replaced = now != 0 && now != knocked_at_.number;
      if (is_replaced) return poll(&line, 1, 0) > 0;
      if (answered_by_.is_over()) return false;
      reminder_.look([&] { return missing_; });
    }
    return true;
  }

  bool hear(welcome& answer, std::vector<descriptor>& handed) {
    return receive(line_.get(), &answer, sizeof answer, handed, answered_by_, least_welcome);
  }

  // False: rank 0 is not there, gave up, or was of another rendezvous that is over, or the listener
  // is no rank 0.
  bool knock(welcome& answer, std::vector<descriptor>& handed) {
    const auto paths = [this] {
      std::vector<std::string> all = folders_.look();
      for (std::string& folder : all) folder += "/" + at_.name + ".socket";
      return all;
    };
    line_ = connect_by(paths, until_, knocked_at_);
    if (!line_ && !until_.is_over()) fail_io("a socket", errno);
    if (!line_) throw not_there{missing_};
    const hello mine = hello_of(at_);
    int own[1 + most_lent_files] = {process_.get()};
    for (std::size_t i = 0; i < mine.lends; ++i) own[1 + i] = (*at_.lends)[i].file.get();
    handed.clear();
    answer = {};
    if (!send_packet(line_.get(), &mine, sizeof mine, own, 1 + mine.lends) || !is_answered() ||
        !hear(answer, handed))
      return false;
    if (answer.kind == is_refusal) return true;
    if (answer.kind != is_receipt || !hear(answer, handed)) return false;
    if (answer.missing.lowest() < 0) return true;
    rank_set told;
    for (int rank = 0; rank < at_.size; ++rank)
      if (answer.missing.has(rank)) told.add(rank);
    if (told.lowest() < 0) told.add(0);
    missing_ = told;
    return false;
  }

  const meeting_place& at_;
  reminder reminder_;
  // Once rank 0 has been reached, its word alone counts: it looks after the others, of whom some
  // may have been seated already, and have gone on and away, when their word reaches us.
  const deadline until_, answered_by_;
  const descriptor process_;
  rendezvous_folders folders_;
  socket_file knocked_at_;
  descriptor line_;
  rank_set missing_;  // as far as this rank knows
};

}  // namespace

company rendezvous(const meeting_place& at) {
  return at.rank == 0 ? host(at).gather() : visitor(at).join();
}

}  // namespace velo::comm
