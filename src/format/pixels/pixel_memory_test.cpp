// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "format/pixels/pixel_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kBudget = std::uint64_t{16} << 20;

class PixelMemoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<PixelMemory> join(const PixelContents& contents, std::uint64_t budget = kBudget) {
    auto memory = PixelMemory::join(contents, budget, folder_.path());
    EXPECT_TRUE(memory) << memory.error().message();
    return memory ? std::move(*memory) : nullptr;
  }
  std::ptrdiff_t registers() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), std::filesystem::directory_iterator());
  }
  storage::TemporaryFolder folder_;
};

TEST_F(PixelMemoryTest, IsOneCopyForAllThatKeepTheSame) {
  auto one = join(some_contents(50));
  auto same = join(some_contents(50));
  auto other = join(some_contents(50, "L"));
  ASSERT_TRUE(one->store().add(7, made_record(7)));
  EXPECT_TRUE(has(same->store(), 7));
  EXPECT_FALSE(has(other->store(), 7));
  one.reset();
  EXPECT_TRUE(has(same->store(), 7));
  EXPECT_TRUE(has(join(some_contents(50))->store(), 7));
  same.reset();
  EXPECT_FALSE(has(join(some_contents(50))->store(), 7)) << "freed with the last one";
  other.reset();
  EXPECT_EQ(registers(), 0);
}

// Runs `body` in another process. The exit status is 0 if `body` returns true.
template <typename Body>
bool elsewhere(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(PixelMemoryTest, AnotherProcessSeesWhatThisOneAddsAndTheOtherWayRound) {
  auto here = join(some_contents(50));
  ASSERT_TRUE(here->store().add(1, made_record(1)));
  EXPECT_TRUE(elsewhere([&] {
    auto there = PixelMemory::join(some_contents(50), kBudget, folder_.path());
    return there && has((*there)->store(), 1) && (*there)->store().add(2, made_record(2));
  }));
  EXPECT_TRUE(has(here->store(), 2));
}

TEST_F(PixelMemoryTest, AKilledProcessLeavesNothingButALineThatDoesNoHarm) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto there = PixelMemory::join(some_contents(50), kBudget, folder_.path());
    if (there) static_cast<void>((*there)->store().add(3, made_record(3)));
    static_cast<void>(::write(ready[1], "x", 1));
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  auto here = join(some_contents(50));
  EXPECT_TRUE(has(here->store(), 3));
  ::kill(child, SIGKILL);
  int status;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(has(here->store(), 3)) << "still held here";
  EXPECT_TRUE(has(join(some_contents(50))->store(), 3)) << "found through this process's line";
  here.reset();
  EXPECT_FALSE(has(join(some_contents(50))->store(), 3));
}

TEST_F(PixelMemoryTest, ARegisterOfNonsenseIsIgnored) {
  auto first = join(some_contents(50));
  const std::string path = std::filesystem::directory_iterator(folder_.path())->path();
  for (const char* text : {"", "nonsense\n", "1 2\n", "999999999 3 4\n1 0 5\n", "-1 -1 -1\n\n\n"}) {
    folder_.write(std::filesystem::path(path).filename().string(), text);
    auto memory = join(some_contents(50));
    EXPECT_TRUE(memory->store().add(0, made_record(0)));
    EXPECT_TRUE(has(join(some_contents(50))->store(), 0));
  }
}

TEST_F(PixelMemoryTest, WithoutAFolderItIsPrivate) {
  auto one = PixelMemory::join(some_contents(50), kBudget, folder_.path("none"));
  auto other = PixelMemory::join(some_contents(50), kBudget, folder_.path("none"));
  ASSERT_TRUE(one && other);
  ASSERT_TRUE((*one)->store().add(0, made_record(0)));
  EXPECT_TRUE(has((*one)->store(), 0));
  EXPECT_FALSE(has((*other)->store(), 0));
}

TEST_F(PixelMemoryTest, KeepsWhatFitsTheBudget) {
  auto memory = join(some_contents(100), 3 * kPageBytes + 3 * made_record(1).size());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(memory->store().add(i, made_record(1)));
  EXPECT_TRUE(memory->store().is_full());
  EXPECT_EQ(memory->store().present(), 3u);
  auto tiny = join(some_contents(101), 1);
  EXPECT_TRUE(tiny->store().add(0, made_record(0)));
  EXPECT_TRUE(tiny->store().is_full());
  EXPECT_FALSE(has(tiny->store(), 0));
}

TEST_F(PixelMemoryTest, ThreadsSeeWholeRecordsOrNone) {
  constexpr std::uint64_t kSamples = 200;
  auto memory = join(some_contents(kSamples));
  PixelStore& store = memory->store();
  std::atomic<std::uint64_t> last = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < kSamples; ++i) {
          const std::uint64_t sample = t % 2 == 0 ? i : kSamples - 1 - i;
          if (!has(store, sample)) {
            const auto added = store.add(sample, made_record(sample));
            ASSERT_TRUE(added);
            last += *added;
          }
          EXPECT_TRUE(has(store, sample));
        }
      });
  }
  EXPECT_EQ(store.present(), kSamples);
  EXPECT_EQ(last, 1u) << "exactly one of them learned that all are there";
}

// Records are large, so that a process can be killed during a write.
TEST_F(PixelMemoryTest, AReaderNeverSeesAPartOfARecord) {
  constexpr std::uint64_t kSamples = 24;
  constexpr int kSide = 400;
  auto memory = join(some_contents(kSamples), std::uint64_t{64} << 20);
  PixelStore& store = memory->store();
  std::jthread reader([&] {
    memory::Record record;
    for (std::uint64_t sample = 0; sample < kSamples;) {
      const auto read = store.read(sample, record);
      ASSERT_TRUE(read) << read.error().message();
      if (!*read) continue;
      const memory::PixelView& view = record.fields[0].pixels;
      for (const int y : {kSide - 1, kSide / 2, 0}) ASSERT_EQ(view.row(y)[view.stride - 1], 0xAB);
      ++sample;
    }
  });
  PixelRecordBuilder builder;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    builder.begin(sample, "large", 2);
    std::ranges::fill(builder.add_image(kSide, kSide, 3), std::byte{0xAB});
    builder.add_integer(0);
    ASSERT_TRUE(store.add(sample, builder.finish()));
  }
}

}  // namespace
}  // namespace feedline::format
