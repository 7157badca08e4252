// SPDX-License-Identifier: Apache-2.0
#include "cache/node/node_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "cache/frame.h"
#include "cache/node/node_cache_fixture.h"

namespace feedline::cache {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Exits the process at this call, as kill -9 would.
int calls_left = 0;
void count_call() {
  if (calls_left-- == 0) ::kill(::getpid(), SIGKILL);
}

const NodeCalls kMortal{
    .files = {
        .open = [](const char* path, int flags, mode_t mode) { return count_call(), ::open(path, flags, mode); },
        .write = [](int fd, const void* data, std::size_t bytes) { return count_call(), ::write(fd, data, bytes); },
        .flush = [](int fd) { return count_call(), ::fdatasync(fd); },
        .rename = [](const char* from, const char* to) { return count_call(), std::rename(from, to); },
        .remove = [](const char* path) { return count_call(), ::unlink(path); }},
    .allocate = [](int fd, off_t offset, off_t bytes) { return count_call(), ::posix_fallocate(fd, offset, bytes); },
};

TEST_F(NodeCacheTest, IsMadeOnceAndFoundByTheWholeNameAndVersion) {
  const auto one = cache(1 << 20);
  int fetched = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(keep(*one, "s3://a/x.tar", 10'000, &fetched), "whole");
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(keep(*cache(1 << 20), "s3://a/x.tar", 10'000, &fetched), "whole");
  EXPECT_EQ(fetched, 1) << "by another one, too";
  keep(*one, "s3://b/x.tar", 10'000, &fetched);
  keep(*one, "s3://a/x.tar", 10'001, &fetched);
  EXPECT_EQ(fetched, 3) << "another bucket, another version";
  EXPECT_FALSE(one->find("s3://a/x.tar", {10'000, 2}, NodeCache::Check::kOnce)) << "of another time";
  EXPECT_EQ(one->counts().made, 3u);
  EXPECT_EQ(files().size(), 7u);
}

TEST_F(NodeCacheTest, KilledAnywhereNothingIsLostAndNothingPassesForWhole) {
  const std::uint64_t limit = room({9000});  // size of one object: the second must evict the first
  int killed = 0;
  for (bool ended = false; !ended; ++killed) {
    ASSERT_LT(killed, 200);
    fs::remove_all(path_);
    ASSERT_EQ(keep(*cache(limit), "first", 9000), "whole");
    const auto statuses = in_processes(1, [&](int) {
      calls_left = killed;
      const auto mine = cache(limit, kMortal);
      return keep(*mine, "second", 9000) == "whole" ? 0 : 1;
    });
    ended = statuses[0] == 0;
    EXPECT_TRUE(ended || statuses[0] == 128 + SIGKILL) << statuses[0];
    EXPECT_LE(pages(), limit) << killed;
    const auto after = cache(limit);
    EXPECT_FALSE(has(*after, "first", 9000) && has(*after, "second", 9000));
    EXPECT_TRUE(!ended || has(*after, "second", 9000));
    for (const std::string object : {"third", "second", "first"}) {  // leftovers must not occupy space
      EXPECT_EQ(keep(*after, object, 9000), "whole") << killed;
      EXPECT_LE(pages(), limit) << killed;
    }
    EXPECT_EQ(files().size(), 3u) << "the ledger, one copy, its entry";
  }
  EXPECT_GE(killed, 14) << "claim, ledger, removals, allocation, three writes, entry, renames";
}

TEST_F(NodeCacheTest, WhoWaitsForADeadMakerMakesItItself) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  cache(1 << 20);
  const pid_t maker = ::fork();
  if (maker == 0) {
    static_cast<void>(cache(1 << 20)->keep("x", {5000, 1}, NodeCache::Check::kOnce, [&](NodeCache::Output&) {
      static_cast<void>(!::write(ready[1], "x", 1));
      ::pause();
      return Result<void>();
    }));
    ::_exit(1);
  }
  char token = 0;
  ASSERT_EQ(::read(ready[0], &token, 1), 1);
  const auto mine = cache(1 << 20);
  int fetched = 0;
  std::thread waiting([&] { EXPECT_EQ(keep(*mine, "x", 5000, &fetched), "whole"); });
  while (::kill(maker, 0) == 0 && fs::exists(file_of("x", 5000, kPartial))) {
    ::kill(maker, SIGKILL);
    if (::waitpid(maker, nullptr, 0) == maker) break;
  }
  waiting.join();
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(pages(), room({5000}));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(NodeCacheTest, OfEightProcessesOneFetchesEachObject) {
  constexpr int kObjects = 12, kProcesses = 8;
  const auto statuses = in_processes(kProcesses, [&](int process) {
    const auto mine = cache(64 << 20);
    int fetched = 0;
    for (int i = 0; i < kObjects; ++i) {
      const std::string object = "object" + std::to_string((i + process / 2) % kObjects);  // pairs meet
      if (keep(*mine, object, 70'000, &fetched) != "whole") return 100;
    }
    return fetched;
  });
  int fetched = 0;
  for (const int status : statuses) {
    EXPECT_LT(status, 100);
    fetched += status;
  }
  EXPECT_EQ(fetched, kObjects);
}

// The folder's size is measured under the ledger's lock, so that it cannot change.
TEST_F(NodeCacheTest, EightWritersNeverPassTheLimit) {
  const std::uint64_t limit = room({60'000, 60'000, 60'000, 30'000, 30'000, 5000});
  cache(limit);
  const auto write = [&](int process) {
    std::mt19937 random(static_cast<unsigned>(process));
    const auto mine = cache(limit);
    int cached = 0;
    for (int i = 0; i < 40; ++i) {
      const auto number = random() % 20;
      const std::size_t bytes = 1000 + 3000 * number;
      const std::string object = "object" + std::to_string(number);
      const std::string got = keep(*mine, object, bytes);
      if (got == "wrong bytes") return 100;
      cached += !got.empty();
    }
    return cached;
  };
  int looks = 0;
  const auto look = [&] {
    {
      const auto ledger = Ledger::lock(path_, node_calls());
      ASSERT_TRUE(ledger);
      EXPECT_LE(pages(), limit);
      EXPECT_LE(pages(), ledger->disk_bytes().value_or(0)) << "the ledger is never below the truth";
    }
    ++looks;
    std::this_thread::yield();  // the kernel's lock is not fair to waiters
  };
  for (const int cached : in_processes(8, write, look)) {
    EXPECT_LT(cached, 100) << "wrong bytes";
    EXPECT_GT(cached, 0);
  }
  EXPECT_GT(looks, 0);
  EXPECT_GT(pages(), limit / 4) << "and it is used";
}

TEST_F(NodeCacheTest, EachAppliesItsOwnLimit) {
  const std::uint64_t small = room({10'000, 10'000}), large = room({10'000, 10'000, 10'000, 10'000});
  const auto narrow = cache(small), wide = cache(large);
  for (const std::string object : {"a", "b", "c", "d"}) keep(*wide, object, 10'000);
  EXPECT_EQ(pages(), large);
  EXPECT_TRUE(has(*narrow, "a", 10'000)) << "an existing copy is used, whichever process stored it";
  EXPECT_EQ(pages(), large);
  keep(*narrow, "e", 10'000);
  EXPECT_EQ(pages(), small);
  keep(*wide, "f", 10'000);
  EXPECT_EQ(pages(), room({10'000, 10'000, 10'000})) << "no need to remove anything";
}

TEST_F(NodeCacheTest, WhatIsReadStaysAndWhatFindsNoRoomIsReadWithoutTheCache) {
  const std::uint64_t limit = room({10'000, 10'000});
  const auto one = cache(limit), other = cache(limit);
  keep(*one, "a", 10'000);
  keep(*one, "b", 10'000);
  auto a = one->find("a", {10'000, 1}, NodeCache::Check::kOnce);
  const auto b = other->find("b", {10'000, 1}, NodeCache::Check::kOnce);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(keep(*one, "c", 10'000), "");
  EXPECT_NE(one->summary().find("all cached copies are being read"), std::string::npos) << one->summary();
  EXPECT_EQ(files().size(), 5u) << "the ledger and two copies";
  a.reset();
  EXPECT_EQ(keep(*one, "c", 10'000), "whole");
  EXPECT_TRUE(has(*one, "b", 10'000));
  EXPECT_FALSE(has(*one, "a", 10'000));
  EXPECT_EQ(keep(*one, "larger than all", 30'000), "");
  EXPECT_NE(one->summary().find("'larger than all' of 30000 bytes does not fit into"), std::string::npos);
  EXPECT_EQ(keep(*one, std::string(5000, 'n'), 100), "") << "a name that an entry has no room for";
  EXPECT_EQ(pages(), limit) << "nothing went for what is not kept";
}

TEST_F(NodeCacheTest, ADamagedCopyIsFoundAndMadeAgain) {
  const std::string object = "x", content = content_of(object, 9000);
  for (const int damage : {0, 1, 2, 3}) {
    int fetched = 0;
    keep(*cache(1 << 20), object, 9000, &fetched);
    if (damage == 0) {
      std::fstream file(file_of(object, 9000), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(8000).put(static_cast<char>(content[8000] ^ 1));
    }
    if (damage == 1) fs::resize_file(file_of(object, 9000), 8999);
    if (damage == 2) fs::remove(file_of(object, 9000, kEntry));
    if (damage == 3) fs::resize_file(file_of(object, 9000, kEntry), 50);
    const auto after = cache(1 << 20);
    fetched = 0;
    EXPECT_EQ(keep(*after, object, 9000, &fetched), "whole") << damage;
    EXPECT_EQ(fetched, 1) << damage;
    EXPECT_NE(after->summary().find("a copy is damaged"), std::string::npos);
    EXPECT_EQ(pages(), room({9000}));
    EXPECT_EQ(keep(*cache(1 << 20), object, 9000, &fetched), "whole");
    EXPECT_EQ(fetched, 1) << damage;
  }
}

// The number of calls that succeed before the first failure, the errno of the failing call, and the number of failures.
int fails_after = -1, failure = 0, failures = 0;
bool fails() {
  if (fails_after < 0 || fails_after-- > 0) return false;
  fails_after = 0;
  ++failures;
  errno = failure;
  return true;
}
NodeCalls faulty(bool allocates) {
  NodeCalls calls = node_calls();
  calls.files.open = [](const char* path, int flags, mode_t mode) {
    return (flags & O_ACCMODE) != O_RDONLY && failure == EROFS && fails() ? -1 : ::open(path, flags, mode);
  };
  calls.files.write = [](int fd, const void* data, std::size_t bytes) -> ssize_t {
    return failure == ENOSPC && fails() ? -1 : ::write(fd, data, bytes);
  };
  calls.allocate = [](int, off_t, off_t) { return EOPNOTSUPP; };
  if (allocates) calls.allocate = [](int, off_t, off_t) { return ENOSPC; };
  return calls;
}

TEST_F(NodeCacheTest, AFullDiskIsSaidAndNothingIsLeftOfTheTry) {
  static const NodeCalls kWrites = faulty(false), kAllocates = faulty(true);
  failure = ENOSPC;
  keep(*cache(1 << 20), "there", 9000);
  const auto refusing = cache(1 << 20, kAllocates);
  EXPECT_EQ(keep(*refusing, "x", 9000), "");
  EXPECT_NE(refusing->summary().find("No space left"), std::string::npos) << refusing->summary();
  int refused = 0;
  for (int after = 0;; ++after) {  // the ledger, three pieces, the entry
    const auto full = cache(1 << 20, kWrites);
    fails_after = after;
    const std::string got = keep(*full, "x", 9000);
    fails_after = -1;
    if (std::exchange(failures, 0) == 0) {
      EXPECT_EQ(got, "whole");
      break;
    }
    ++refused;
    EXPECT_EQ(got, "");
    EXPECT_NE(full->summary().find("No space left"), std::string::npos) << full->summary();
    EXPECT_EQ(pages(), room({9000})) << "the room is given back, " << after;
    EXPECT_EQ(files().size(), 3u);
    EXPECT_TRUE(has(*full, "there", 9000));
  }
  EXPECT_EQ(refused, 5);
  failure = 0;
}

TEST_F(NodeCacheTest, AFolderThatTakesNoFilesIsReadAsItIs) {
  static const NodeCalls kReadOnly = faulty(false);
  keep(*cache(1 << 20), "there", 9000);
  failure = EROFS;
  fails_after = 0;
  const auto before = files();
  const auto reading = cache(1 << 20, kReadOnly);
  EXPECT_NE(reading->summary().find("nothing can be added to the cache"), std::string::npos) << reading->summary();
  EXPECT_TRUE(has(*reading, "there", 9000));
  EXPECT_EQ(keep(*reading, "other", 9000), "");
  EXPECT_NE(reading->summary().find("read without the cache: cannot create"), std::string::npos);
  EXPECT_EQ(files(), before);
  fails_after = -1;
  failure = 0;
}

TEST_F(NodeCacheTest, WhatTheSourceSaysIsTheErrorAndTheNextOneTries) {
  const auto one = cache(1 << 20);
  const auto failing = [](std::size_t written) {
    return [written](NodeCache::Output& output) -> Result<void> {
      const std::string some(written, 's');
      FEEDLINE_CHECK_OK(output.append(std::as_bytes(std::span(some))));
      return storage_error("the network is gone", ETIMEDOUT);
    };
  };
  for (const std::size_t written : {0u, 100u, 9000u}) {
    const auto refused = one->keep("x", {9000, 1}, NodeCache::Check::kOnce, failing(written));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what.find("the network is gone"), 0u) << refused.error().message();
  }
  const auto write = [&](std::size_t bytes) {
    return one->keep("x", {9000, 1}, NodeCache::Check::kOnce, [bytes](NodeCache::Output& output) {
      const std::string some(bytes, 's');
      return output.append(std::as_bytes(std::span(some)));
    });
  };
  ASSERT_FALSE(write(8999));
  EXPECT_NE(write(8999).error().message().find("ended 1 bytes early"), std::string::npos);
  ASSERT_FALSE(write(9001)) << "longer than its version says";
  EXPECT_EQ(pages(), 0u);
  EXPECT_EQ(keep(*one, "x", 9000), "whole");
}

TEST_F(NodeCacheTest, OnlyItsOwnFolderAndFilesAreTouched) {
  const std::string other = folder_.write("data/photo.jpg", "a user's");
  const auto refused = NodeCache::open(folder_.path("data"), {.bytes = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_NE(refused.error().message().find("contains other files"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path("data")), {}), 1);

  const auto one = cache(room({9000}));
  keep(*one, "a", 9000);
  const std::string folder = fs::path(file_of("a", 9000)).parent_path().string();
  const std::string digits(30, '0'), first = folder.substr(folder.size() - 2);
  std::set<std::string> foreign;
  for (const std::string& name :
       {std::string("notes.txt"), first + digits, first + digits + ".tar", "zz" + digits + ".object",
        "0" + first + digits + ".partial", std::string("x.unfinished")})
    foreign.insert(folder_.write("cache/objects/" + first + "/" + name, "a user's"));
  foreign.insert(folder_.write("cache/objects/deep/" + first + digits + ".object", "a user's"));
  const std::string target = folder_.write("target", "a user's");
  foreign.insert(folder + "/" + first + digits + ".object");
  fs::create_symlink(target, folder + "/" + first + digits + ".object");
  for (int i = 0; i < 20; ++i) keep(*one, "object" + std::to_string(i), 9000);
  for (const std::string& file : foreign) EXPECT_EQ(folder_.read(file), "a user's") << file;
  EXPECT_FALSE(has(*one, "a", 9000)) << "it went";
}

TEST_F(NodeCacheTest, AnotherVersionsCacheIsRefusedAndADamagedLedgerIsCountedAgain) {
  keep(*cache(1 << 20), "a", 9000);
  for (const std::string ledger : {"", "damaged", "something that is longer than a ledger is by far"}) {
    std::ofstream(path_ + "/" + kLedgerName, std::ios::trunc) << ledger;
    const auto counting = cache(room({9000, 9000}));
    EXPECT_EQ(Ledger::lock(path_, node_calls())->disk_bytes(), room({9000})) << ledger;
    EXPECT_TRUE(has(*counting, "a", 9000));
  }
  memory::ByteBuffer buffer;
  const std::string ledger = folder_.read(path_ + "/" + kLedgerName);
  std::uint64_t magic = 0;
  std::memcpy(&magic, ledger.data(), sizeof magic);
  const auto foreign = FrameBuilder({magic, 2}, {0}).write(buffer);
  std::ofstream(path_ + "/" + kLedgerName, std::ios::trunc | std::ios::binary)
      << std::string(reinterpret_cast<const char*>(foreign.data()), foreign.size());
  const auto refused = NodeCache::open(path_, {.bytes = 1 << 20});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_NE(refused.error().message().find("another version of Feedline"), std::string::npos);
}

TEST_F(NodeCacheTest, AShareIsOfWhatTheDiskWouldHaveWithoutTheCache) {
  keep(*cache(64 << 20), "a", 8 << 20);
  const auto of_share = [&](double share) { return NodeCache::open(path_, {.share = share}).value()->limit(); };
  const double free = static_cast<double>(fs::space(path_).available + room({8 << 20}));
  EXPECT_NEAR(static_cast<double>(of_share(0.5)), free / 2, free / 20);
  EXPECT_NEAR(static_cast<double>(of_share(0.1)), free / 10, free / 100);
}

// Compares evictions with a model without files: copies that the plan needs last go first, then the least recently used
// ones. Held copies and copies that are needed as soon as the new one are never evicted, and no more are evicted than
// necessary.
TEST_F(NodeCacheTest, WhatGoesFollowsThePlanWhateverIsAsked) {
  struct Modelled {
    std::uint64_t bytes = 0, used = 0;
    bool held = false;
  };
  for (unsigned seed = 0; seed < 6; ++seed) {
    fs::remove_all(path_);
    std::mt19937 random(seed);
    const std::uint64_t limit = room({20'000, 20'000, 20'000, 20'000, 9000, 5000});
    const auto one = cache(limit);
    std::map<std::string, Modelled> model;
    std::map<std::string, std::uint64_t> plan;
    std::shared_ptr<const NextUse> followed;
    std::map<std::string, HeldCopy> held;
    const auto next = [&](const std::string& object) { return plan.contains(object) ? plan.at(object) : kNever; };
    const auto goes_for = [&](const std::string& victim, const std::string& object) {
      return plan.empty() || next(victim) > (plan.contains(object) ? plan.at(object) : 0);
    };
    const auto used_bytes = [&] {
      std::uint64_t bytes = 0;
      for (const auto& [object, entry] : model) bytes += disk_bytes(entry.bytes);
      return bytes;
    };
    for (std::uint64_t step = 1; step <= 150; ++step) {
      const std::string object = "object" + std::to_string(random() % 14);
      const std::uint64_t bytes = 1000 + 4000 * (std::hash<std::string>{}(object) % 6);
      if (random() % 12 == 0) {  // another plan, or none
        plan.clear();
        if (random() % 3 != 0)
          for (int i = 0; i < 14; ++i)
            if (random() % 3 != 0) plan["object" + std::to_string(i)] = random() % 9;
        followed = plan.empty() ? nullptr : one->follow([&](const Entry& entry) { return next(entry.object); });
      }
      if (random() % 4 == 0 && !held.empty()) {
        model.at(held.begin()->first).held = false;
        held.erase(held.begin());
        one->note_change();
      }
      bool fits = true;
      if (!model.contains(object)) {
        std::map<std::string, Modelled> left = model;
        std::uint64_t taken = used_bytes();
        while (taken + disk_bytes(bytes) > limit) {
          auto victim = left.end();
          for (auto it = left.begin(); it != left.end(); ++it)
            if (!it->second.held && goes_for(it->first, object) &&
                (victim == left.end() || next(it->first) > next(victim->first) ||
                 (next(it->first) == next(victim->first) && it->second.used < victim->second.used)))
              victim = it;
          if (victim == left.end()) break;
          taken -= disk_bytes(victim->second.bytes);
          left.erase(victim);
        }
        model = std::move(left);
        fits = taken + disk_bytes(bytes) <= limit;
      }
      ASSERT_EQ(keep(*one, object, bytes), fits ? "whole" : "") << seed << " " << step;
      if (fits) {
        model[object] = {bytes, step, model.contains(object) && model[object].held};
        // timestamps days apart, so that the test does not have to wait
        fs::last_write_time(file_of(object, bytes), fs::file_time_type::clock::now() - 24h * (200 - step));
        if (random() % 5 == 0 && held.size() < 3) {
          auto cached = one->find(object, {bytes, 1}, NodeCache::Check::kOnce);
          ASSERT_TRUE(cached);
          fs::last_write_time(file_of(object, bytes), fs::file_time_type::clock::now() - 24h * (200 - step));
          held.insert_or_assign(object, std::move(*cached));
          model[object].held = true;
        }
      }
      std::set<std::string> expected, found;
      for (const auto& [name, entry] : model) expected.insert(file_of(name, entry.bytes));
      const auto there = scan(path_, Leftovers::kLook, node_calls());
      for (const Copy& copy : there->whole) found.insert(copy.path + std::string(kObject));
      ASSERT_EQ(found, expected) << seed << " " << step;
      ASSERT_EQ(pages(), used_bytes());
    }
    EXPECT_GT(one->counts().removed, 20u);
  }
}

TEST_F(NodeCacheTest, OfSeveralPlansTheOneCountsThatNeedsACopySoonest) {
  const auto one = cache(room({5000, 5000}));
  auto training = one->follow([](const Entry& entry) { return entry.object == "a" ? 10u : kNever; });
  const auto validating = one->follow([](const Entry& entry) { return entry.object == "b" ? 20u : kNever; });
  EXPECT_EQ(keep(*one, "a", 5000), "whole");
  EXPECT_EQ(keep(*one, "b", 5000), "whole");
  EXPECT_EQ(keep(*one, "c", 5000), "whole") << "unknown before, but requested now";
  EXPECT_TRUE(has(*one, "a", 5000));
  EXPECT_FALSE(has(*one, "b", 5000)) << "needed later";
  training.reset();
  EXPECT_EQ(keep(*one, "b", 5000), "whole");
  EXPECT_FALSE(has(*one, "a", 5000) && has(*one, "c", 5000));
  EXPECT_EQ(keep(*one, "d", 5000), "whole");
  EXPECT_TRUE(has(*one, "b", 5000)) << "of the one plan that is left the only one that is needed";
}

// After a refusal, the folder is not read again until it changes.
TEST_F(NodeCacheTest, WhatIsNeededAsSoonStaysAndNobodyLooksAgainUntilSomethingChanges) {
  const auto one = cache(room({5000, 5000}));
  std::atomic<std::uint64_t> of_c{5};
  const auto plan = one->follow([&](const Entry& entry) { return entry.object == "c" ? of_c.load() : 5; });
  EXPECT_EQ(keep(*one, "a", 5000), "whole");
  EXPECT_EQ(keep(*one, "b", 5000), "whole");
  EXPECT_EQ(keep(*one, "c", 5000), "");
  EXPECT_TRUE(has(*one, "a", 5000) && has(*one, "b", 5000));
  EXPECT_NE(one->summary().find("needed sooner"), std::string::npos) << one->summary();
  fs::remove(file_of("a", 5000));
  fs::remove(file_of("a", 5000, kEntry));
  fs::remove(fs::path(path_) / kLedgerName);  // so that the next lookup counts again
  EXPECT_EQ(keep(*one, "c", 5000), "") << "the folder was not read";
  of_c = 4;
  EXPECT_EQ(keep(*one, "c", 5000), "whole") << "what is needed sooner is no matter of that";
  of_c = 5;
  EXPECT_EQ(keep(*one, "a", 5000), "") << "b is needed as soon, and c sooner";
  fs::remove(file_of("b", 5000));
  fs::remove(file_of("b", 5000, kEntry));
  fs::remove(fs::path(path_) / kLedgerName);
  one->note_change();
  EXPECT_EQ(keep(*one, "a", 5000), "whole");
}

TEST_F(NodeCacheTest, WhatAnotherOneIsFetchingCanBeLeftToHim) {
  const auto one = cache(1 << 20), other = cache(1 << 20);
  bool was_left = false;
  const std::string content = content_of("x", 5000);
  const auto cached =
      one->keep("x", {5000, 1}, NodeCache::Check::kOnce, [&](NodeCache::Output& output) -> Result<void> {
        const auto none = [](NodeCache::Output&) -> Result<void> { return storage_error("fetched twice", 0); };
        const auto left = other->keep("x", {5000, 1}, NodeCache::Check::kOnce, none, NodeCache::Busy::kLeave);
        was_left = left && !*left;
        return output.append(std::as_bytes(std::span(content)));
      });
  ASSERT_TRUE(cached && *cached);
  EXPECT_TRUE(was_left);
  EXPECT_EQ(other->summary().find("read without"), std::string::npos) << other->summary();
}

// A lock belongs to the open file, which a forked child shares. The lock is released when the parent closes the file,
// and not when the child does.
TEST_F(NodeCacheTest, AChildKeepsNoLockThatItsParentGaveBackAndTakesNoneAway) {
  const auto one = cache(1 << 20);
  EXPECT_EQ(keep(*one, "x", 5000), "whole");
  auto cached = std::make_unique<std::optional<HeldCopy>>(one->find("x", {5000, 1}, NodeCache::Check::kOnce));
  ASSERT_TRUE(*cached);
  std::array<int, 2> to_child{}, to_parent{};
  ASSERT_TRUE(::pipe(to_child.data()) == 0 && ::pipe(to_parent.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {  // has inherited the descriptor of the copy, and stays alive after closing its own
    char ignored = 0;
    auto* const copy = new std::optional<HeldCopy>(std::move(*cached));
    if (::read(to_child[0], &ignored, 1) != 1) ::_exit(2);
    copy->reset();
    if (::write(to_parent[1], "x", 1) != 1 || ::read(to_child[0], &ignored, 1) != 1) ::_exit(3);
    ::_exit(0);
  }
  char ignored = 0;
  EXPECT_EQ(::write(to_child[1], "x", 1), 1);
  EXPECT_EQ(::read(to_parent[0], &ignored, 1), 1);
  const std::string path = copy_path(path_, entry_name("x", {5000, 1}));
  EXPECT_FALSE(remove_unused(path, node_calls())) << "its parent has the lock";
  EXPECT_EQ(::write(to_child[1], "x", 1), 1);
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
  const pid_t other = ::fork();  // has it open and waits to be killed
  if (other == 0) {
    ::pause();
    ::_exit(0);
  }
  cached.reset();
  EXPECT_TRUE(remove_unused(path, node_calls())) << "a child has it open, and not locked";
  ::kill(other, SIGKILL);
  EXPECT_EQ(::waitpid(other, &status, 0), other);
}

// One list of eviction candidates is used for several evictions; a copy that is used after the list was built stays.
TEST_F(NodeCacheTest, OfManyCopiesTheOldestGoButNotThoseUsedSince) {
  constexpr int kCopies = 64;
  const auto one = cache(disk_bytes(2000) * kCopies);
  const auto name = [](int i) { return "object" + std::to_string(i); };
  for (int i = 0; i < kCopies; ++i) {
    keep(*one, name(i), 2000);
    fs::last_write_time(file_of(name(i), 2000), fs::file_time_type::clock::now() - 24h * (kCopies - i));
  }
  keep(*one, "more", 2000);
  EXPECT_FALSE(has(*one, name(0), 2000));
  EXPECT_TRUE(has(*one, name(1), 2000)) << "used now";
  keep(*one, "more still", 2000);
  EXPECT_TRUE(has(*one, name(1), 2000));
  EXPECT_FALSE(has(*one, name(2), 2000));
  EXPECT_EQ(one->counts().removed, 2u);
}

}  // namespace
}  // namespace feedline::cache
