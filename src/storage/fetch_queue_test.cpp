// SPDX-License-Identifier: Apache-2.0
// Tests of FetchQueue over every transport. fetch_control_test.cpp tests cancellation and deadlines.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <thread>

#include "base/check.h"
#include "storage/fetch.h"
#include "storage/ring_transport.h"
#include "storage/short_reads_storage.h"
#include "storage/slow_storage.h"
#include "storage/storage_contract.h"
#include "storage/thread_transport.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

struct QueueUnderTest {
  std::string name;
  std::function<std::shared_ptr<const Storage>()> storage;
  QueueKind kind = QueueKind::kBest;
  friend void PrintTo(const QueueUnderTest& queue, std::ostream* out) { *out << queue.name; }
};

std::shared_ptr<const Storage> no_uring_storage() {
  SystemReads reads = system_reads();
  reads.ring = false;
  return std::make_shared<LocalStorage>(reads);
}
std::shared_ptr<const Storage> slow_storage() {
  return std::make_shared<SlowStorage>(local_storage(), SlowReads{.latency = 300us, .at_once = 7});
}
std::shared_ptr<const Storage> slow_storage_without_uring() {
  return std::make_shared<SlowStorage>(local_storage(),
                                       SlowReads{.latency = 300us, .at_once = 7, .own_transport = false});
}

class FetchQueueContract : public testing::TestWithParam<QueueUnderTest> {
 protected:
  void SetUp() override { ASSERT_NE(queue_, nullptr); }
  Fetch& start_whole(const std::string& path) {
    Fetch& fetch = *fetches_.emplace_back(std::make_unique<Fetch>());
    fetch.piece.path = path;
    queue_->start(fetch);
    return fetch;
  }
  Fetch& start_piece(std::shared_ptr<const Reader> reader, std::uint64_t offset, std::uint64_t bytes) {
    Fetch& fetch = *fetches_.emplace_back(std::make_unique<Fetch>());
    fetch.piece = {std::move(reader), "", offset, bytes};
    queue_->start(fetch);
    return fetch;
  }
  void finish(std::size_t count) {
    std::set<Fetch*> seen;
    for (std::size_t i = 0; i < count; ++i) {
      Fetch* fetch = queue_->finished(FetchQueue::Clock::now() + 200s);
      ASSERT_NE(fetch, nullptr) << "30 s without a fetch that is finished";
      EXPECT_TRUE(seen.insert(fetch).second) << "finished twice";
    }
    EXPECT_EQ(queue_->finished(FetchQueue::Clock::now()), nullptr);
  }
  static std::string text(const Fetch& fetch) {
    EXPECT_TRUE(fetch.bytes) << fetch.bytes.error().message();
    return fetch.bytes ? text_of(*fetch.bytes) : std::string("(error)");
  }

  TemporaryFolder folder_;
  std::shared_ptr<const Storage> storage_ = GetParam().storage();
  std::vector<std::unique_ptr<Fetch>> fetches_;
  std::unique_ptr<FetchQueue> queue_ = make_fetch_queue(storage_, GetParam().kind);
};

TEST_P(FetchQueueContract, GivesWholeObjects) {
  std::map<Fetch*, std::string> expected;
  for (const std::size_t bytes : {0ul, 1ul, 4095ul, 4096ul, 4097ul, 70'001ul, 300'000ul}) {
    const std::string content = recognisable_bytes(bytes);
    expected[&start_whole(folder_.write(std::to_string(bytes), content))] = content;
  }
  finish(expected.size());
  for (const auto& [fetch, content] : expected) EXPECT_EQ(text(*fetch), content);
}

TEST_P(FetchQueueContract, GivesPiecesAsTheirReaderDoes) {
  const std::string content = recognisable_bytes(70'001);
  const std::string path = folder_.write("object", content);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const std::shared_ptr<const Reader> reader = *storage_->open(path, access);
    std::map<Fetch*, std::string> expected;
    for (const std::size_t offset : {0ul, 1ul, 4095ul, 69'999ul})
      for (const std::size_t bytes : {0ul, 1ul, 512ul, 5000ul, 100'000ul})
        expected[&start_piece(reader, offset, bytes)] = content.substr(offset, bytes);
    for (const std::uint64_t offset :
         {std::uint64_t{70'001}, std::uint64_t{99'999}, ~std::uint64_t{0} / 2, ~std::uint64_t{0}})
      expected[&start_piece(reader, offset, 10)] = "";
    finish(expected.size());
    for (const auto& [fetch, bytes] : expected) EXPECT_EQ(text(*fetch), bytes) << fetch->piece.offset;
  }
}

TEST_P(FetchQueueContract, TellsWhatCannotBeReadAsReadAllDoes) {
  folder_.write("file", "x");
  std::filesystem::create_symlink("nowhere", folder_.path("dangling"));
  ASSERT_EQ(::mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  std::vector<Fetch*> fetches;
  for (const std::string name : {"missing", "", "dangling", "file/below", "pipe"})
    fetches.push_back(&start_whole(name.empty() ? folder_.path() : folder_.path(name)));
  finish(fetches.size());
  for (const Fetch* fetch : fetches) {
    memory::ByteBuffer buffer;
    const auto expected = storage_->read_all(fetch->piece.path, buffer, fetch->most_bytes);
    ASSERT_FALSE(fetch->bytes) << fetch->piece.path;
    EXPECT_EQ(fetch->bytes.error().message(), expected.error().message());
    EXPECT_EQ(fetch->bytes.error().system_errno, expected.error().system_errno);
  }
}

TEST_P(FetchQueueContract, TakesMoreThanFitAtOnceAndReusesBuffers) {
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < 600; ++i) {
    contents.push_back(recognisable_bytes(i * 7));
    start_whole(folder_.write(std::to_string(i), contents.back()));
  }
  finish(600);
  for (std::size_t i = 0; i < 600; ++i) EXPECT_EQ(text(*fetches_[i]), contents[i]);
  for (std::size_t i = 0; i < 600; ++i) {
    fetches_[i]->piece.path = folder_.path(std::to_string(599 - i));
    queue_->start(*fetches_[i]);
  }
  finish(600);
  for (std::size_t i = 0; i < 600; ++i) EXPECT_EQ(text(*fetches_[i]), contents[599 - i]);
}

TEST_P(FetchQueueContract, WhatIsTooLargeIsAnErrorWithoutMemoryForIt) {
  constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40;
  const std::string path = folder_.write("sparse", "");
  if (::truncate(path.c_str(), kTerabyte) != 0) GTEST_SKIP() << "no file of a terabyte here";
  const std::shared_ptr<const Reader> reader = *storage_->open(path, Access::kRead);
  const std::vector<const Fetch*> fetches{&start_whole(path), &start_piece(reader, 512, kTerabyte - 512)};
  finish(2);
  for (const Fetch* fetch : fetches) {
    ASSERT_FALSE(fetch->bytes);
    EXPECT_EQ(fetch->bytes.error().code, ErrorCode::kData) << fetch->bytes.error().message();
    EXPECT_EQ(fetch->buffer.capacity(), 0u);
  }
  EXPECT_NE(fetches[0]->bytes.error().message().find(path), std::string::npos);
  Fetch& exact = *fetches_.emplace_back(std::make_unique<Fetch>());
  exact.piece.path = folder_.write("exact", recognisable_bytes(10'000));
  exact.most_bytes = 10'000;
  queue_->start(exact);
  finish(1);
  EXPECT_EQ(text(exact), recognisable_bytes(10'000));
  for (const bool says_so : {true, false}) {  // a pseudo file reports a size of 0
    Fetch& fetch = *fetches_.emplace_back(std::make_unique<Fetch>());
    fetch.piece.path = says_so ? exact.piece.path : "/proc/self/status";
    fetch.most_bytes = 100;
    queue_->start(fetch);
    finish(1);
    ASSERT_FALSE(fetch.bytes);
    EXPECT_EQ(fetch.bytes.error().code, ErrorCode::kData) << fetch.bytes.error().message();
    EXPECT_LE(fetch.buffer.capacity(), 101u);
  }
}

TEST_P(FetchQueueContract, AFileCutWhileItIsReadIsShort) {
  const std::string path = folder_.write("object", recognisable_bytes(100'000));
  const std::shared_ptr<const Reader> reader = *storage_->open(path, Access::kRead);
  std::filesystem::resize_file(path, 1000);
  const Fetch& fetch = start_piece(reader, 500, 5000);
  finish(1);
  EXPECT_EQ(text(fetch), recognisable_bytes(1000).substr(500));
}

TEST_P(FetchQueueContract, ReadsTheVersionThatIsAskedForAndNoOther) {
  const std::string path = folder_.write("object", recognisable_bytes(9000));
  const Version version = *storage_->stat(path);
  const std::shared_ptr<const Reader> reader = *storage_->open(path, Access::kRead);
  const auto start_both = [&](const Version& asked) {
    std::vector<Fetch*> fetches;
    for (const bool whole : {true, false}) {
      Fetch& fetch = *fetches_.emplace_back(std::make_unique<Fetch>());
      fetch.piece = whole ? Piece{nullptr, path} : Piece{reader, "", 100, 2000};
      fetch.version = asked;
      queue_->start(fetch);
      fetches.push_back(&fetch);
    }
    finish(2);
    return fetches;
  };
  const auto right = start_both(version);
  EXPECT_EQ(text(*right[0]), recognisable_bytes(9000));
  EXPECT_EQ(text(*right[1]), recognisable_bytes(9000).substr(100, 2000));
  for (const Version& other : {Version{8999, version.mtime_ns}, Version{9000, version.mtime_ns - 1}})
    for (const Fetch* fetch : start_both(other)) {
      ASSERT_FALSE(fetch->bytes);
      EXPECT_EQ(fetch->bytes.error().code, ErrorCode::kStorage);
      const std::string said = fetch->bytes.error().message();
      for (const std::string& part :
           {path, std::string("changed between index and read"), std::to_string(other.bytes) + " bytes",
            std::string("9000 bytes"), std::string("open the dataset again")})
        EXPECT_NE(said.find(part), std::string::npos) << said;
    }
}

TEST_P(FetchQueueContract, SomeOfManyAreCancelledAndTheOthersCome) {
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < 200; ++i) {
    contents.push_back(recognisable_bytes(i * 41));
    folder_.write(std::to_string(i), contents.back());
  }
  for (int round = 0; round < 5; ++round) {
    fetches_.clear();
    for (std::size_t i = 0; i < contents.size(); ++i) {
      start_whole(folder_.path(std::to_string(i)));
      if (i % 3 == 2) queue_->cancel(*fetches_[i - i % 5]);  // some several times, some already finished
    }
    finish(contents.size());
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (fetches_[i]->bytes) {
        EXPECT_EQ(text(*fetches_[i]), contents[i]);
        continue;
      }
      EXPECT_EQ(fetches_[i]->bytes.error().code, ErrorCode::kCancelled);
      EXPECT_EQ(fetches_[i]->buffer.capacity(), 0u);
    }
  }
}

TEST_P(FetchQueueContract, WaitingEndsAtItsTimeAndByWaking) {
  EXPECT_EQ(queue_->finished(FetchQueue::Clock::now() + 1ms), nullptr);
  queue_->wake();  // before the wait, but not lost
  EXPECT_EQ(queue_->finished(FetchQueue::Clock::now() + 200s), nullptr);
  std::jthread waker([this] {
    std::this_thread::sleep_for(2ms);
    queue_->wake();
  });
  const auto started = FetchQueue::Clock::now();
  EXPECT_EQ(queue_->finished(started + 200s), nullptr);
  EXPECT_LT(FetchQueue::Clock::now() - started, 100s);
  const Fetch& fetch = start_whole(folder_.write("object", "content"));
  finish(1);
  EXPECT_EQ(text(fetch), "content");
}

INSTANTIATE_TEST_SUITE_P(Queues, FetchQueueContract,
                         testing::Values(QueueUnderTest{"local", local_storage},
                                         QueueUnderTest{"local_threads", local_storage, QueueKind::kThreads},
                                         QueueUnderTest{"no_uring", no_uring_storage},
                                         QueueUnderTest{"short_reads", short_reads_storage},
                                         QueueUnderTest{"slow", slow_storage},
                                         QueueUnderTest{"slow_no_uring", slow_storage_without_uring}),
                         [](const auto& test) { return test.param.name; });

TEST(FetchQueue, IsIoUringWhereTheKernelHasIt) {
  if (!RingTransport::make()) GTEST_SKIP() << "this kernel, or a filter of system calls, refuses io_uring";
  EXPECT_EQ(make_fetch_queue(local_storage(), QueueKind::kBest)->name(), "io_uring");
  EXPECT_EQ(make_fetch_queue(slow_storage(), QueueKind::kBest)->name(), "io_uring");
  EXPECT_EQ(make_fetch_queue(no_uring_storage(), QueueKind::kBest)->name(), "threads");
  EXPECT_EQ(make_fetch_queue(local_storage(), QueueKind::kThreads)->name(), "threads");
}

// Reads that are made one after another would never be in flight together. The count depends on no clock other than the
// wrapper's latency, within which all reads must be started.
TEST(SlowStorage, ReadsAreUnderWayTogetherAndNoMoreThanItsTurns) {
  const TemporaryFolder folder;
  const std::string path = folder.write("object", "content");
  for (const QueueKind kind : {QueueKind::kBest, QueueKind::kThreads}) {
    for (const std::uint64_t at_once : {std::uint64_t{3}, std::uint64_t{64}}) {
      // long enough to start 20 threads on a busy machine; what waits for its turn has time enough anyway
      const auto latency = at_once < 20 ? 10ms : 300ms;
      const auto storage = std::make_shared<SlowStorage>(local_storage(), SlowReads{latency, at_once});
      std::vector<Fetch> fetches(20);
      const auto queue = make_fetch_queue(storage, kind);
      for (Fetch& fetch : fetches) {
        fetch.piece.path = path;
        queue->start(fetch);
      }
      for (std::size_t i = 0; i < fetches.size(); ++i) {
        const Fetch* fetch = queue->finished(FetchQueue::Clock::now() + 200s);
        ASSERT_NE(fetch, nullptr);
        EXPECT_EQ(text_of(*fetch->bytes), "content");
        EXPECT_FALSE(fetch->was_near);
      }
      EXPECT_EQ(storage->counts().reads, 20u);
      EXPECT_EQ(storage->counts().most_at_once, std::min<std::uint64_t>(at_once, 20));
    }
  }
}

int refusals = 0;  // that the kernel still returns to submitters
int submit_after_refusals(io_uring* ring) { return refusals > 0 && --refusals >= 0 ? -EBUSY : ::io_uring_submit(ring); }

// Starts more fetches than there is room for, with a kernel that accepts no requests, either for some time or
// permanently.
TEST(RingTransport, AKernelThatTakesNothingHoldsUpNobody) {
  refusals = 0;
  auto transport = RingTransport::make(submit_after_refusals);
  if (!transport) GTEST_SKIP() << "no io_uring here";
  const auto queue = std::make_unique<FetchQueue>(std::move(transport));
  const TemporaryFolder folder;
  std::vector<Fetch> fetches(700);
  const auto start_all = [&] {
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      fetches[i].piece.path = folder.write(std::to_string(i), recognisable_bytes(i));
      queue->start(fetches[i]);
    }
  };
  const auto finish_all = [&] {
    std::set<Fetch*> seen;
    while (seen.size() < fetches.size()) {
      Fetch* const fetch = queue->finished(FetchQueue::Clock::now() + 200s);
      if (fetch != nullptr) {  // nullptr: wake() is reported more than once
        ASSERT_TRUE(seen.insert(fetch).second);
      }
    }
    for (std::size_t i = 0; i < fetches.size(); ++i) EXPECT_EQ(text_of(*fetches[i].bytes), recognisable_bytes(i));
  };
  for (const int few : {1, 2, 5, 20}) {
    refusals = few;
    start_all();
    finish_all();
  }
  refusals = std::numeric_limits<int>::max();
  start_all();  // does not wait for the kernel
  EXPECT_EQ(queue->finished(FetchQueue::Clock::now() + 5ms), nullptr);
  for (int again = 0; again < 2; ++again) {  // of the second one the kernel has not taken the request that waits for it
    const auto started = FetchQueue::Clock::now();
    const std::jthread waker([&] { queue->wake(); });
    EXPECT_EQ(queue->finished(started + 200s), nullptr);
    EXPECT_LT(FetchQueue::Clock::now() - started, 100s) << "wake() is heard";
  }
  refusals = 0;
  finish_all();
}

TEST(RingTransport, KnowsWhatWasInMemory) {
  auto transport = RingTransport::make();
  if (!transport) GTEST_SKIP() << "no io_uring here";
  const auto queue = std::make_unique<FetchQueue>(std::move(transport));
  const TemporaryFolder folder;
  Fetch fetch;
  fetch.piece.path = folder.write("object", recognisable_bytes(50'000));
  queue->start(fetch);
  ASSERT_EQ(queue->finished(FetchQueue::Clock::now() + 200s), &fetch);
  EXPECT_TRUE(fetch.was_near) << "written a moment ago";
}

// Reads throw an exception on the thread that reads.
class ThrowingStorage final : public Storage {
 public:
  explicit ThrowingStorage(std::function<void(const std::string&)> thrower) : thrower_(std::move(thrower)) {}
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override {
    return local_->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    thrower_(path);
    return local_->read_all(path, buffer, most);
  }
  Result<std::vector<Entry>> list(const std::string& directory) const override { return local_->list(directory); }
  Result<ObjectStat> stat(const std::string& path) const override { return local_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_->is_directory(path); }

 private:
  std::shared_ptr<const Storage> local_ = local_storage();
  std::function<void(const std::string&)> thrower_;
};

std::vector<Result<std::string>> fetched(FetchQueue& queue, const std::vector<std::string>& paths) {
  std::vector<Fetch> fetches(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    fetches[i].piece.path = paths[i];
    queue.start(fetches[i]);
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    EXPECT_NE(queue.finished(FetchQueue::Clock::now() + 200s), nullptr) << "a caller would wait for ever";
  std::vector<Result<std::string>> texts;
  for (const Fetch& fetch : fetches)
    texts.push_back(fetch.bytes ? Result<std::string>(text_of(*fetch.bytes)) : std::unexpected(fetch.bytes.error()));
  return texts;
}

TEST(ThreadTransport, WhatAReadThrowsIsItsFetchsErrorAndTheThreadGoesOn) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good", "content"), bad = folder.write("bad", ""),
                    broken = folder.path("broken");
  const auto queue = make_fetch_queue(std::make_shared<ThrowingStorage>([&](const std::string& path) {
                                        if (path == bad) throw std::bad_alloc();
                                        FEEDLINE_CHECK(path != broken);
                                      }),
                                      QueueKind::kThreads);
  for (int again = 0; again < 50; ++again) {  // more than the maximum number of threads
    const auto texts = fetched(*queue, {bad, good, broken, good});
    ASSERT_FALSE(texts[0]);
    EXPECT_EQ(texts[0].error().what, "out of memory");
    EXPECT_EQ(texts[1], "content");
    ASSERT_FALSE(texts[2]);
    EXPECT_EQ(texts[2].error().code, ErrorCode::kInternal);
    EXPECT_EQ(texts[3], "content");
  }
}

// Feedline's code throws only std::exception, but a backend's library may throw other types. Such an exception ends the
// thread.
TEST(ThreadTransport, WhereThreadsEndNobodyWaitsForEver) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good", "content"), bad = folder.write("bad", "");
  const auto queue = make_fetch_queue(
      std::make_shared<ThrowingStorage>([&](const std::string& path) { path == bad ? throw 42 : void(); }),
      QueueKind::kThreads);
  for (std::size_t i = 0; i < ThreadTransport::kMostThreads; ++i) {
    const auto texts = fetched(*queue, {bad});
    ASSERT_FALSE(texts[0]);
    EXPECT_EQ(texts[0].error().what, "internal error: an exception of an unknown type");
    if (i == 3) {
      EXPECT_EQ(fetched(*queue, {good})[0], "content") << "others go on";
    }
  }
  for (const auto& text : fetched(*queue, {good, bad, good})) {  // none is left, and none is made any more
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().what, "internal error: an exception of an unknown type");
  }
}

TEST(ThreadTransport, ManyThreadsThatEndAtOnce) {
  const auto queue =
      make_fetch_queue(std::make_shared<ThrowingStorage>([](const std::string&) { throw 42; }), QueueKind::kThreads);
  for (const auto& text : fetched(*queue, std::vector<std::string>(300, "any"))) EXPECT_FALSE(text);
}

const auto kStorages =
    testing::Values(StorageUnderTest{"slow", slow_storage}, StorageUnderTest{"no_uring", no_uring_storage});
INSTANTIATE_TEST_SUITE_P(SlowStorage, ObjectContract, kStorages, name_of_storage);
INSTANTIATE_TEST_SUITE_P(SlowStorage, StorageContract, kStorages, name_of_storage);

}  // namespace
}  // namespace feedline::storage
