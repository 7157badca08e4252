// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "cache/file_lock.h"
#include "format/inspected.h"
#include "format/pixels/pixel_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

class PixelFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<PixelStore> fill(std::uint64_t samples, std::uint64_t budget = 0) {
    auto store = open_or_fill_pixel_file(path_, some_contents(samples), budget);
    EXPECT_TRUE(store) << store.error().message();
    return store ? std::move(*store) : nullptr;
  }
  // Adds samples, and finishes the file when it has all samples.
  void add(PixelStore& store, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      const auto added = store.add(i, made_record(i));
      ASSERT_TRUE(added) << added.error().message();
      if (*added) {
        ASSERT_TRUE(finish_pixel_file(store, path_));
      }
    }
  }
  std::string write_finished(std::uint64_t samples) {
    add(*fill(samples), 0, samples);
    return TemporaryFolder::read(path_);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("photos.pixels");
};

TEST_F(PixelFileTest, GetsItsNameWithItsLastSampleAndIsReadByIt) {
  auto store = fill(50);
  add(*store, 0, 49);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(has(*store, 49));
  add(*store, 49, 50);
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".filling"));
  const auto finished = open_pixel_file(path_);
  ASSERT_TRUE(finished) << finished.error().message();
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(has(*store, i));  // processes that filled the file keep using it
    EXPECT_TRUE(has(**finished, i));
    EXPECT_EQ(key_of(*(*finished)->find(i)), key_text(i));
  }
}

TEST_F(PixelFileTest, IsADataset) {
  write_finished(20);
  const auto format = open_records(path_, {});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->name(), "pixels");
  EXPECT_EQ((*format)->size(), 20u);
  EXPECT_EQ((*format)->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ((*format)->where(7).key, key_text(7));
  memory::Record record;
  ASSERT_TRUE((*format)->read(7, record));
  EXPECT_TRUE(is_as_made(record, 7));
  const auto inspection = inspect(path_, {});
  ASSERT_TRUE(inspection);
  EXPECT_EQ(inspection->samples, 20u);
  EXPECT_TRUE(inspection->findings.empty());
  EXPECT_FALSE(open(path_ + ".filling", {}));
}

TEST_F(PixelFileTest, GoesOnWhereAKilledProcessStopped) {
  constexpr std::uint64_t kSamples = 4000;
  std::mt19937 random(1);
  for (int round = 0; round < 4; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = open_or_fill_pixel_file(path_, some_contents(kSamples), 0);
      for (std::uint64_t i = 0; store && i < kSamples - 1; ++i)
        if (!(*store)->add(i, made_record(i))) break;
      ::pause();
    }
    ::usleep(static_cast<useconds_t>(500 + random() % 8000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    auto store = fill(kSamples);
    std::uint64_t there = 0;
    for (std::uint64_t i = 0; i < kSamples; ++i) there += has(*store, i);
    EXPECT_EQ(store->present(), there);
  }
  auto store = fill(kSamples);
  add(*store, 0, kSamples);
  EXPECT_TRUE(open_pixel_file(path_));
}

TEST_F(PixelFileTest, IsFilledByManyThreadsAndProcessesAtOnce) {
  constexpr std::uint64_t kSamples = 300;
  auto one = fill(kSamples), other = fill(kSamples);  // like two processes, each with its own mapping and lock
  std::atomic<int> finished = 0;
  const auto work = [&](PixelStore& store, std::uint64_t start) {
    memory::Record record;
    for (std::uint64_t step = 0; step < kSamples; ++step) {
      const std::uint64_t sample = (start + step) % kSamples;
      const auto there = store.read(sample, record);
      ASSERT_TRUE(there);
      if (*there) {
        EXPECT_TRUE(is_as_made(record, sample));
        continue;
      }
      const auto added = store.add(sample, made_record(sample));
      ASSERT_TRUE(added);
      finished += *added;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { work(i % 2 == 0 ? *one : *other, i * 70); });
  }
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(one->present(), kSamples);
  ASSERT_TRUE(finish_pixel_file(*one, path_));
  EXPECT_TRUE(open_pixel_file(path_));
}

// Forks a child that runs `work` and then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      work();
      static_cast<void>(!::write(ends[1], "x", 1));
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "the child has ended";
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

bool is_free(const std::string& path) {
  const storage::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(file.valid());
  return cache::lock_open_file(file, LOCK_EX | LOCK_NB);
}

TEST_F(PixelFileTest, TheLockEndsWithTheStoreThoughAChildHasTheFileOpen) {
  auto store = fill(50);
  add(*store, 0, 10);
  const Child child([] {});
  EXPECT_FALSE(is_free(path_ + ".filling"));
  store.reset();
  EXPECT_TRUE(is_free(path_ + ".filling"));
}

TEST_F(PixelFileTest, AChildReadsAddsNothingAndLeavesItsParentsLock) {
  auto store = fill(50);
  add(*store, 0, 10);
  const Child child([&] {
    if (!has(*store, 9) || store->add(20, made_record(20)) != false || has(*store, 20)) ::_exit(1);
    store.reset();
  });
  EXPECT_FALSE(is_free(path_ + ".filling"));
  EXPECT_EQ(store->present(), 10u);
  add(*store, 10, 50);
  EXPECT_TRUE(open_pixel_file(path_));
}

TEST_F(PixelFileTest, OtherPixelsAreRefused) {
  write_finished(5);
  const auto refused = [&](const PixelContents& contents) {
    const auto store = open_or_fill_pixel_file(path_, contents, 0);
    return store ? std::string() : store.error().what;
  };
  EXPECT_EQ(refused(some_contents(5)), "");
  EXPECT_NE(refused(some_contents(6)).find("another dataset"), std::string::npos);
  EXPECT_NE(refused(some_contents(5, "RGB, resize(256)")).find("resize(256)"), std::string::npos);
  PixelContents changed = some_contents(5);
  changed.fingerprint = 18;
  EXPECT_NE(refused(changed).find("samples have changed"), std::string::npos);
  changed = some_contents(5);
  changed.source = "another folder";
  EXPECT_NE(refused(changed).find("another folder"), std::string::npos);
  folder_.write("photos.pixels", "something else");
  EXPECT_NE(refused(some_contents(5)).find("not a pixel file"), std::string::npos);
}

TEST_F(PixelFileTest, AnUnfinishedFileOfOtherPixelsIsRefusedToo) {
  auto store = fill(5);
  add(*store, 0, 2);
  store.reset();
  const auto other = open_or_fill_pixel_file(path_, some_contents(5, "L"), 0);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConfig);
  EXPECT_NE(other.error().what.find(".filling"), std::string::npos);
}

// Whichever byte is damaged, the result is an error or the correct pixels.
TEST_F(PixelFileTest, DamageIsReportedAndNeverShown) {
  const std::string sound = write_finished(12);
  std::mt19937_64 random(3);
  int errors = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = sound;
    // damages the small head and index as often as the records
    const std::size_t region = random() % 3 == 0 ? sizeof(PixelHead) : bytes.size();
    if (round % 10 == 0)
      bytes.resize(random() % bytes.size());
    else
      bytes[random() % region] ^= static_cast<char>(1 << random() % 8);
    folder_.write("photos.pixels", bytes);
    auto store = open_pixel_file(path_);
    errors += !store;
    if (!store) continue;
    for (std::uint64_t i = 0; i < 12; ++i) {
      memory::Record record;
      const auto read = (*store)->read(i, record);
      errors += !read;
      if (read) {
        EXPECT_TRUE(!*read || is_as_made(record, i)) << "round " << round;
      } else {
        EXPECT_EQ(read.error().where.shard, path_);
      }
    }
  }
  EXPECT_GT(errors, 50);
}

TEST_F(PixelFileTest, ADamagedRecordHasAPlace) {
  std::string bytes = write_finished(12);
  const auto offset = (*open_pixel_file(path_))->where(4).offset.value_or(0);
  ASSERT_GT(offset, 0u);
  bytes[offset + 100] ^= 1;
  folder_.write("photos.pixels", bytes);
  memory::Record record;
  const auto read = (*open_records(path_, {}))->read(4, record);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
  EXPECT_EQ(read.error().where.shard, path_);
  EXPECT_EQ(read.error().where.offset, offset);
  EXPECT_EQ(read.error().where.record, 4u);
  const auto inspection = inspect(path_, {});
  ASSERT_TRUE(inspection);
  ASSERT_EQ(inspection->findings.size(), 1u);
  EXPECT_EQ(inspection->findings[0].code, "damaged_record");
}

TEST_F(PixelFileTest, ADamagedRecordOfAnUnfinishedFileIsMadeAgain) {
  auto store = fill(5);
  add(*store, 0, 4);
  const auto offset = store->where(2).offset.value_or(0);
  store.reset();
  std::string bytes = TemporaryFolder::read(path_ + ".filling");
  bytes[offset + 100] ^= 1;
  folder_.write("photos.pixels.filling", bytes);
  store = fill(5);
  EXPECT_FALSE(has(*store, 2));
  EXPECT_TRUE(has(*store, 3));
  EXPECT_EQ(store->present(), 3u);
  add(*store, 2, 3);
  EXPECT_TRUE(has(*store, 2));
  add(*store, 4, 5);
  EXPECT_TRUE(open_pixel_file(path_));
}

TEST_F(PixelFileTest, AFileThatIsCutWhileItIsOpenIsAnErrorAndNoSignal) {
  write_finished(12);
  const auto store = open_pixel_file(path_);
  ASSERT_TRUE(store && has(**store, 11));
  memory::Record record;
  for (std::uintmax_t bytes = std::filesystem::file_size(path_); bytes > 0; bytes = bytes * 9 / 10) {
    std::filesystem::resize_file(path_, bytes - 1);
    int errors = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const auto read = (*store)->read(i, record);
      errors += !read;
      if (read) {
        EXPECT_TRUE(is_as_made(record, i));
      }
    }
    EXPECT_GT(errors, 0) << bytes;
    EXPECT_LE((*store)->present(), 12u);
  }
}

TEST_F(PixelFileTest, WhatDoesNotFitTheBudgetIsLeftOut) {
  const std::uint64_t most = 3 * kPageBytes + 3 * made_record(1).size();
  auto store = fill(100, most);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(store->add(i, made_record(1)));
  EXPECT_TRUE(store->is_full());
  EXPECT_EQ(store->present(), 3u);
  EXPECT_LE(std::filesystem::file_size(path_ + ".filling"), most);
}

TEST_F(PixelFileTest, ADiskThatIsFullIsAnError) {
  auto store = fill(100);
  ::signal(SIGXFSZ, SIG_IGN);  // a process limit simulates a full disk
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 3 * kPageBytes + 5000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  std::optional<Error> error;
  for (std::uint64_t i = 0; i < 100 && !error; ++i)
    if (auto added = store->add(i, made_record(i)); !added) error = added.error();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kStorage);
  EXPECT_NE(error->where.shard.find(".filling"), std::string::npos);
  for (std::uint64_t i = 0; i < 100; ++i) static_cast<void>(has(*store, i));  // existing samples are undamaged
  add(*store, 0, 100);
  EXPECT_TRUE(open_pixel_file(path_));
}

TEST_F(PixelFileTest, TwoMachinesDoNotFillOneFile) {
  auto here = fill(5);
  const std::string filling = path_ + ".filling";
  const int fd = ::open(filling.c_str(), O_RDWR);
  const char elsewhere[] = "another machine";
  ASSERT_EQ(::pwrite(fd, elsewhere, sizeof elsewhere, offsetof(PixelHead, machine)),
            static_cast<ssize_t>(sizeof elsewhere));
  ::close(fd);
  const auto refused = open_or_fill_pixel_file(path_, some_contents(5), 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("another machine is filling"), std::string::npos);
  here.reset();  // no process is filling the file, so this one continues
  EXPECT_TRUE(open_or_fill_pixel_file(path_, some_contents(5), 0));
}

}  // namespace
}  // namespace feedline::format
