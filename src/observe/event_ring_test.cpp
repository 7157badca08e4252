// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "feedline/observe.h"
#include "observe/fake_root.h"

namespace feedline {
namespace {

using observe::FakeRoot;

TEST(EventRing, GivesBackWhatWasRecorded) {
  const FakeRoot folder;
  auto ring = EventRing::create(folder.path("ring"), 8);
  ASSERT_TRUE(ring) << ring.error().message();
  const std::uint64_t begin = base::now_ns() - 1000;
  ring->record(3, begin, 7, 11, 13, true);
  ring->record(3, begin, 1, 2, 3, false);  // only the totals
  const auto read = read_events(folder.path("ring"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->pid, ::getpid());
  ASSERT_EQ(read->events.size(), 1u);
  const Event& event = read->events[0];
  EXPECT_EQ(event.begin_ns, begin);
  EXPECT_GE(event.wall_ns, 1000u);
  EXPECT_EQ(event.cpu_ns, 7u);
  EXPECT_EQ(event.a, 11u);
  EXPECT_EQ(event.b, 13u);
  EXPECT_EQ(event.kind, 3u);
  EXPECT_EQ(event.thread, static_cast<std::uint32_t>(::gettid()));
  EXPECT_EQ(read->totals[3].count, 2u);
  EXPECT_EQ(read->totals[3].cpu_ns, 8u);
  EXPECT_EQ(read->totals[3].a, 13u);
  EXPECT_GE(read->totals[3].longest_ns, 1000u);
}

TEST(EventRing, KeepsTheLatestAndCountsAll) {
  const FakeRoot folder;
  auto ring = EventRing::create(folder.path("ring"), 4);
  ASSERT_TRUE(ring);
  for (std::uint64_t i = 0; i < 11; ++i) ring->record(1, base::now_ns(), 0, i, 0, true);
  ring->record(kEventKinds, 0, 0, 0, 0, true);  // an invalid kind
  const auto read = read_events(folder.path("ring"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->written, 11u);
  EXPECT_EQ(read->totals[1].count, 11u);
  ASSERT_EQ(read->events.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(read->events[i].a, 7 + i);
}

TEST(EventRing, IsReadableAfterItsProcessWasKilled) {
  const FakeRoot folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto ring = EventRing::create(folder.path("ring"), 16);
    for (std::uint64_t i = 0; ring && i < 5; ++i) ring->record(2, base::now_ns(), 0, i, 0, true);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto read = read_events(folder.path("ring"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->pid, child);
  EXPECT_EQ(read->events.size(), 5u);
}

// A process that is killed inside record() leaves a slot that is marked as incomplete.
TEST(EventRing, LeavesOutWhatWasNotFinished) {
  const FakeRoot folder;
  constexpr std::uint64_t kCapacity = 4, kSlotBytes = 56;
  {
    auto ring = EventRing::create(folder.path("ring"), kCapacity);
    ASSERT_TRUE(ring);
    for (std::uint64_t i = 0; i < 3; ++i) ring->record(1, base::now_ns(), 0, i, 0, true);
  }
  const auto slots = std::filesystem::file_size(folder.path("ring")) - kCapacity * kSlotBytes;
  std::fstream file(folder.path("ring"), std::ios::in | std::ios::out | std::ios::binary);
  const std::uint64_t writing = ~std::uint64_t{0};
  file.seekp(static_cast<std::streamoff>(slots + kSlotBytes));
  file.write(reinterpret_cast<const char*>(&writing), sizeof writing);
  file.close();
  const auto read = read_events(folder.path("ring"));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->events.size(), 2u);
  EXPECT_EQ(read->events[0].a, 0u);
  EXPECT_EQ(read->events[1].a, 2u);
}

// a and b match in every event that a reader receives, however many events are overwritten concurrently.
TEST(EventRing, NeverShowsHalfAnEvent) {
  const FakeRoot folder;
  auto ring = EventRing::create(folder.path("ring"), 4);
  ASSERT_TRUE(ring);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop; ++i) ring->record(1, 0, i, i, ~i, true);
  });
  for (int round = 0; round < 2000; ++round) {
    const auto read = read_events(folder.path("ring"));
    ASSERT_TRUE(read);
    for (const Event& event : read->events) {
      ASSERT_EQ(event.a, ~event.b);
      ASSERT_EQ(event.a, event.cpu_ns);
    }
  }
  stop = true;
  writer.join();
}

TEST(EventRing, RefusesWhatIsNone) {
  const FakeRoot folder;
  EXPECT_EQ(EventRing::create(folder.path("ring"), 3).error().code, ErrorCode::kConfig);
  EXPECT_EQ(EventRing::create(folder.path("no/such/ring"), 4).error().code, ErrorCode::kStorage);
  EXPECT_EQ(read_events(folder.path("none")).error().code, ErrorCode::kStorage);
  folder.write("short", "abc");
  EXPECT_EQ(read_events(folder.path("short")).error().code, ErrorCode::kData);
  folder.write("zeros", std::string(1 << 20, '\0'));
  EXPECT_EQ(read_events(folder.path("zeros")).error().code, ErrorCode::kData);
  ASSERT_TRUE(EventRing::create(folder.path("cut"), 64));
  ASSERT_EQ(::truncate(folder.path("cut").c_str(), 18000), 0);
  EXPECT_FALSE(read_events(folder.path("cut")));
}

}  // namespace
}  // namespace feedline
