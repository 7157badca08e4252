// SPDX-License-Identifier: Apache-2.0
#include "cache/node/cached_storage.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "cache/node/node_cache_fixture.h"
#include "storage/fetch.h"
#include "storage/slow_storage.h"

namespace feedline::cache {
namespace {

namespace fs = std::filesystem;
using storage::Access;
using storage::Reader;
using storage::Storage;
using storage::Version;

// Local files that log every read to a file shared by processes: "OFFSET BYTES PATH".
class CountingReader final : public Reader {
 public:
  CountingReader(std::unique_ptr<Reader> reader, std::function<void(std::uint64_t, std::size_t)> count)
      : reader_(std::move(reader)), count_(std::move(count)) {}
  Result<storage::ObjectStat> stat() const override { return reader_->stat(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto got = reader_->read_at(offset, out);
    if (got) count_(offset, *got);
    return got;
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  const std::string& name() const override { return reader_->name(); }

 private:
  const std::unique_ptr<Reader> reader_;
  const std::function<void(std::uint64_t, std::size_t)> count_;
};

class CountingStorage final : public Storage {
 public:
  explicit CountingStorage(const std::string& log)
      : log_(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {}
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access) const override {
    FEEDLINE_TRY(auto reader, local_->open(path, Access::kRead));
    return std::make_unique<CountingReader>(
        std::move(reader), [this, path](std::uint64_t offset, std::size_t bytes) { count(path, offset, bytes); });
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    const auto got = local_->read_all(path, buffer, most);
    if (got) count(path, 0, got->size());
    return got;
  }
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override {
    const auto got = local_->read_version(path, buffer, most, version);
    if (got) count(path, 0, got->size());
    return got;
  }
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    return local_->list(directory);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return local_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_->is_directory(path); }
  std::string identity(const std::string& path) const override { return local_->identity(path); }

 private:
  void count(const std::string& path, std::uint64_t offset, std::size_t bytes) const {
    const std::string line = std::to_string(offset) + " " + std::to_string(bytes) + " " + path + "\n";
    EXPECT_EQ(::write(log_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  const std::shared_ptr<const Storage> local_ = storage::local_storage();
  const storage::FileDescriptor log_;
};

class CachedStorageTest : public NodeCacheTest {
 protected:
  std::shared_ptr<const Storage> cached(std::uint64_t limit = 64 << 20, const NodeCalls& calls = node_calls()) const {
    return std::make_shared<CachedStorage>(std::make_shared<CountingStorage>(log_), cache(limit, calls));
  }
  // Returns how often each byte of the object was fetched, or -1 if some bytes were fetched more often than others.
  int fetched(const std::string& path, std::size_t bytes) const {
    std::map<std::uint64_t, int> changes{{0, 0}, {bytes, 0}};  // at each byte, the change of the count from the
                                                               // preceding byte
    std::ifstream log(log_);
    std::uint64_t offset = 0, count = 0;
    for (std::string name; log >> offset >> count && log.ignore() && std::getline(log, name);)
      if (name == path) ++changes[offset], --changes[offset + count];
    const auto past_the_end = changes.upper_bound(bytes);
    if (past_the_end != changes.end()) return -1;
    int times = 0;
    std::set<int> found;
    for (const auto& [at, change] : changes)
      if (times += change; at < bytes) found.insert(times);
    return found.size() == 1 ? *found.begin() : -1;
  }
  static std::string range(const Reader& reader, std::uint64_t offset, std::size_t bytes) {
    std::string out(bytes, '\0');
    const auto got = reader.read_at(offset, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(got) << got.error().message();
    return out.substr(0, got.value_or(0));
  }
  std::string whole(const Storage& storage, const std::string& path) const {
    memory::ByteBuffer buffer;
    const auto got = storage.read_all(path, buffer, 1 << 20);
    EXPECT_TRUE(got) << got.error().message();
    return got ? std::string(reinterpret_cast<const char*>(got->data()), got->size()) : "(error)";
  }

  const std::string log_ = folder_.path("log");
};

// Eight concurrent processes read shards by range and photos whole, first with a cold cache and then with a warm one.
TEST_F(CachedStorageTest, EightProcessesFetchEachByteOnceAndTheSecondPassNone) {
  constexpr std::size_t kShard = 9'000'001, kPhoto = 40'000;  // the shard is fetched in several pieces
  std::map<std::string, std::size_t> objects;
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    objects[folder_.write("a/" + number + ".tar", content_of("a" + number, kShard))] = kShard;
    objects[folder_.write("b/" + number + ".jpg", content_of("b" + number, kPhoto))] = kPhoto;
  }
  const auto read_everything = [&](int process) {
    const auto storage = cached();
    std::vector<std::string> names;
    for (const auto& [path, bytes] : objects) names.push_back(path);
    std::rotate(names.begin(), names.begin() + process / 2, names.end());
    for (const std::string& path : names) {
      const std::string content = folder_.read(path);
      if (path.ends_with(".jpg") && whole(*storage, path) != content) return 1;
      const auto reader = storage->open(path, process % 3 == 0 ? Access::kMap : Access::kRead);
      if (!reader) return 2;
      for (std::size_t at = 0; at < content.size(); at += 1'000'003)
        if (range(**reader, at, 1'000'003) != content.substr(at, 1'000'003)) return 3;
    }
    return 0;
  };
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(in_processes(8, read_everything), std::vector<int>(8, 0));
    for (const auto& [path, bytes] : objects) EXPECT_EQ(fetched(path, bytes), 1) << path << " in pass " << pass;
  }
}

TEST_F(CachedStorageTest, AnObjectIsFetchedWithItsFirstBytesAndNotForAGlance) {
  const std::string content = content_of("x", 100'000), path = folder_.write("x.tar", content);
  const auto storage = cached();
  const auto glancing = storage->open(path, Access::kRead), reading = storage->open(path, Access::kRead);
  ASSERT_TRUE(glancing && reading);
  EXPECT_EQ(range(**glancing, 0, 512), content.substr(0, 512));
  EXPECT_EQ((*glancing)->stat()->bytes, content.size());
  EXPECT_EQ(pages(), 0u);
  EXPECT_EQ(range(**reading, 500, 20), content.substr(500, 20));
  EXPECT_EQ(pages(), room({content.size()}));
  EXPECT_GE((*reading)->descriptor(), 0) << "what reads asynchronously can read the copy";
  EXPECT_EQ(range(**glancing, 99'999, 20), content.substr(99'999));
  EXPECT_EQ(folder_.read(log_), "0 512 " + path + "\n0 100000 " + path + "\n");
}

TEST_F(CachedStorageTest, APartIsReadWhereItIsStoredAndOfItsCopyOnceThereIsOne) {
  const std::string content = content_of("x", 100'000), path = folder_.write("x.parquet", content);
  const auto storage = std::dynamic_pointer_cast<const CachedStorage>(cached());
  const Version version = *storage->stat(path);
  for (const auto& known : {std::optional<Version>(), std::optional(version)}) {
    const auto part = storage->open_part(path, known);
    ASSERT_TRUE(part);
    EXPECT_EQ(range(**part, 90'000, 20), content.substr(90'000, 20));
  }
  EXPECT_EQ(pages(), 0u);
  EXPECT_EQ(whole(*storage, path), content);
  const auto opened = storage->open_part(path, version);
  ASSERT_TRUE(opened);
  EXPECT_EQ(range(**opened, 90'000, 20), content.substr(90'000, 20));
  const std::string part = "90000 20 " + path + "\n";
  EXPECT_EQ(folder_.read(log_), part + part + "0 100000 " + path + "\n");
}

TEST_F(CachedStorageTest, AnotherVersionIsFetchedAndAnIndexedOneNeverMixedUp) {
  const std::string path = folder_.write("x.jpg", "the first one");
  const auto storage = cached();
  const Version first = *storage->stat(path);
  EXPECT_EQ(whole(*storage, path), "the first one");
  folder_.write("x.jpg", "another and longer one");
  EXPECT_EQ(whole(*storage, path), "another and longer one");
  EXPECT_EQ(whole(*storage, path), "another and longer one");
  memory::ByteBuffer buffer;
  const auto indexed = storage->read_version(path, buffer, 100, first);
  ASSERT_TRUE(indexed) << "its copy is there, and is what was indexed";
  EXPECT_EQ(indexed->size(), first.bytes);
  EXPECT_FALSE(storage->read_version(path, buffer, 100, {first.bytes, first.mtime_ns + 1}));
  EXPECT_EQ(folder_.read(log_), "0 13 " + path + "\n0 22 " + path + "\n");
}

TEST_F(CachedStorageTest, AnObjectThatChangesWhileItIsFetchedIsAnErrorAndNotKept) {
  const std::string path = folder_.write("x.tar", content_of("before", 50'000));
  const auto storage = cached();
  const auto reader = storage->open(path, Access::kRead);
  ASSERT_TRUE(reader);
  folder_.write("x.tar", content_of("after", 50'000));
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
  std::vector<std::byte> out(1000);
  const auto got = (*reader)->read_at(0, out);
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message().find("has changed"), std::string::npos) << got.error().message();
  EXPECT_EQ(pages(), 0u);
}

TEST_F(CachedStorageTest, WhatCannotBeKeptIsReadAllTheSame) {
  const std::string shard = folder_.write("x.tar", content_of("x", 50'000));
  const std::string photo = folder_.write("y.jpg", content_of("y", 20'000));
  static NodeCalls full = node_calls();
  full.allocate = [](int, off_t, off_t) { return ENOSPC; };
  for (const auto& storage : {cached(4096), cached(64 << 20, full)}) {
    const auto reader = storage->open(shard, Access::kRead);
    ASSERT_TRUE(reader);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(range(**reader, 100, 1000), content_of("x", 50'000).substr(100, 1000));
      EXPECT_EQ(whole(*storage, photo), content_of("y", 20'000));
    }
    EXPECT_NE(storage->summary().find("read without the cache"), std::string::npos) << storage->summary();
    EXPECT_EQ(pages(), 0u);
  }
}

TEST_F(CachedStorageTest, ADamagedCopyIsNeverHandedOut) {
  const std::string path = folder_.write("y.jpg", content_of("y", 20'000));
  const auto storage = cached();
  EXPECT_EQ(whole(*storage, path), content_of("y", 20'000));
  const auto there = scan(path_, Leftovers::kLook, node_calls());
  for (const Copy& copy : there->whole) {
    std::fstream file(copy.path + std::string(kObject), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(10'000).put('x').put('y').put('z');
  }
  EXPECT_EQ(whole(*storage, path), content_of("y", 20'000)) << "read whole, it is checked each time";
  EXPECT_EQ(whole(*storage, path), content_of("y", 20'000));
  EXPECT_EQ(whole(*storage, path), content_of("y", 20'000));
  EXPECT_EQ(fetched(path, 20'000), 2) << "at first, and in place of the damaged one";
}

// Makes many concurrent reads from a slow storage backend, like the pipeline.
TEST_F(CachedStorageTest, ManyFetchesOfFewObjectsFetchEachOnce) {
  using namespace std::chrono_literals;
  std::map<std::string, std::string> contents;
  for (int i = 0; i < 6; ++i) {
    const std::string content = content_of(std::to_string(i), 30'000);
    contents[folder_.write(std::to_string(i) + ".jpg", content)] = content;
  }
  const auto slow = std::make_shared<storage::SlowStorage>(
      storage::local_storage(), storage::SlowReads{.latency = 500us, .own_transport = false});
  const auto storage = std::make_shared<CachedStorage>(slow, cache(64 << 20));
  const auto queue = storage::make_fetch_queue(storage, storage::QueueKind::kBest);
  std::vector<std::unique_ptr<storage::Fetch>> fetches;
  for (int i = 0; i < 60; ++i) {
    fetches.push_back(std::make_unique<storage::Fetch>());
    fetches.back()->piece.path = std::next(contents.begin(), i % 6)->first;
    queue->start(*fetches.back());
  }
  for (int i = 0; i < 60; ++i) {
    const storage::Fetch* fetch = queue->finished(storage::FetchQueue::Clock::now() + 60s);
    ASSERT_NE(fetch, nullptr);
    ASSERT_TRUE(fetch->bytes) << fetch->bytes.error().message();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(fetch->bytes->data()), fetch->bytes->size()),
              contents.at(fetch->piece.path));
  }
  EXPECT_EQ(slow->counts().reads, 6u);
}

// Local files with known checksums whose first reads are damaged in transit.
class VouchedStorage final : public Storage {
 public:
  VouchedStorage(std::string content, int damaged) : content_(std::move(content)), damaged_(damaged) {}
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access) const override {
    FEEDLINE_TRY(auto reader, storage::local_storage()->open(path, Access::kRead));
    return std::make_unique<DamagingReader>(std::move(reader), *this);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return storage::local_storage()->read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& folder) const override {
    return storage::local_storage()->list(folder);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override {
    return storage::local_storage()->stat(path);
  }
  Result<bool> is_directory(const std::string& path) const override {
    return storage::local_storage()->is_directory(path);
  }
  Result<std::optional<storage::ObjectSum>> known_sum(const std::string&, const Version&) const override {
    ++asked;
    return storage::sum_of(storage::SumKind::kCrc32c, std::as_bytes(std::span(content_)));
  }
  mutable std::atomic<int> asked = 0, begun = 0;

 private:
  class DamagingReader final : public Reader {
   public:
    DamagingReader(std::unique_ptr<Reader> reader, const VouchedStorage& of) : reader_(std::move(reader)), of_(of) {}
    Result<storage::ObjectStat> stat() const override { return reader_->stat(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
      const auto got = reader_->read_at(offset, out);
      if (got && offset == 0 && ++of_.begun <= of_.damaged_) out[5] ^= std::byte{1};
      return got;
    }
    Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
      return std::nullopt;
    }
    const std::string& name() const override { return reader_->name(); }

   private:
    const std::unique_ptr<Reader> reader_;
    const VouchedStorage& of_;
  };
  const std::string content_;
  const int damaged_;
};

TEST_F(CachedStorageTest, ACopyHasTheChecksumThatSomebodyVouchesFor) {
  const std::string content = content_of("x", 9'000'001);  // several pieces
  const std::string path = folder_.write("x.tar", content);
  for (const int damaged : {0, 1, 2}) {
    const auto vouched = std::make_shared<VouchedStorage>(content, damaged);
    const std::string location = folder_.path("cache" + std::to_string(damaged));
    const auto cache = NodeCache::open(location, {.bytes = 64 << 20});
    const CachedStorage storage(vouched, *cache);
    const auto reader = storage.open(path, Access::kRead);
    ASSERT_TRUE(reader) << reader.error().message();
    std::vector<std::byte> room(content.size());
    const auto got = (*reader)->read_at(0, room);
    EXPECT_EQ(vouched->begun, damaged == 0 ? 1 : 2) << "fetched again if it may have been damaged in transit";
    if (damaged < 2) {
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_TRUE(std::ranges::equal(room, std::as_bytes(std::span(content))));
      EXPECT_NE(storage.summary().find("1 fetched objects matched"), std::string::npos) << storage.summary();
      continue;
    }
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kStorage);
    for (const std::string& part :
         {path, std::string("crc32c"), std::string("the server lists"), std::string("verify=None")})
      EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().message();
    EXPECT_TRUE(scan(location, Leftovers::kLook, node_calls())->whole.empty()) << "and none is kept";
  }
}

TEST_F(CachedStorageTest, WhatNobodyVouchesForIsNotCompared) {
  const std::string path = folder_.write("x.tar", content_of("x", 30'000));
  const auto storage = cached();
  const auto reader = storage->open(path, Access::kRead);
  EXPECT_EQ(range(**reader, 1000, 100), content_of("x", 30'000).substr(1000, 100));
  EXPECT_EQ(storage->summary().find("checksum"), std::string::npos) << storage->summary();
}

}  // namespace
}  // namespace feedline::cache
