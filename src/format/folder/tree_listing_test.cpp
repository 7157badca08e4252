// SPDX-License-Identifier: Apache-2.0
// Tests that folders in a bucket or on an HTTP server have the samples of a local copy in the same order, with one
// listing.
#include "format/folder/tree_listing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "base/rounds.h"
#include "cache/node/cached_storage.h"
#include "format/inspected.h"
#include "storage/http/listing_file.h"
#include "storage/s3/bucket_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

namespace fs = std::filesystem;
using storage::HttpServer, storage::ServedAnswer, storage::ServedRequest;

// The names include some that must be escaped, some whose order by key differs from the order by folder, and files that
// are not samples.
const std::map<std::string, std::string> kFiles{{"cat/1 + 1=2.jpg", "one"},
                                                {"cat/a-b/3.png", "two"},
                                                {"cat/a/4.JPEG", "three"},
                                                {"cat/a/deep/4%20.jpg", "four"},
                                                {"cat/\xc3\xa9t\xc3\xa9.webp", "five"},
                                                {"cat/notes.txt", "no sample"},
                                                {"cat-like/&<>'\".jpg", "six"},
                                                {"dog+x y=z/1.jpg", "seven"},
                                                {"\xe7\x8a\xac/1.jpg", "eight"},
                                                {"read me.md", "beside"}};

class TreeListingTest : public testing::Test {
 protected:
  TreeListingTest() {
    for (const auto& [path, content] : kFiles) {
      local_.write("local/train/" + path, content);
      bucket_.put("train/" + path, content);
    }
    bucket_.put("train/", "");  // folder markers, as created by web consoles
    bucket_.put("train/cat/", "");
    bucket_.put("train/cat/a/deep/", "");
    bucket_.put("train-2/other/1.jpg", "");
  }

  OpenOptions options() const { return {.index_directory = local_.path("kept"), .storage = storage_}; }
  std::shared_ptr<const RecordFormat> open(const OpenOptions& options, const std::string& source = kTrain) const {
    auto format = open_records(source, options);
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  std::string error_of(const std::string& source) const {
    const auto format = open_records(source, options());
    return format ? "it opens" : format.error().message();
  }
  static std::string samples_of(const RecordFormat& format) {
    std::string text;
    memory::Record record;
    record.most_bytes = 1000;
    for (std::uint64_t i = 0; i < format.size(); ++i) {
      const auto read = format.read(i, record);
      EXPECT_TRUE(read) << read.error().message();
      if (!read) return text;
      const auto bytes = record.fields[0].bytes;
      text += format.where(i).key + " of " + std::to_string(record.fields[1].value) + ": " +
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + "\n";
    }
    return text;
  }
  std::size_t listings() const {
    const auto requests = server_.requests();
    return static_cast<std::size_t>(
        std::ranges::count_if(requests, [](const ServedRequest& r) { return r.target.contains("list-type=2"); }));
  }

  static constexpr const char* kTrain = "s3://bucket/train/";
  storage::TemporaryFolder local_;
  storage::Bucket bucket_;
  std::atomic<int> refuses_with_{0};
  HttpServer server_{[this](const ServedRequest& request) {
    if (refuses_with_ != 0)
      return ServedAnswer{.status = refuses_with_, .body = "<Error><Code>AccessDenied</Code></Error>"};
    return bucket_.answer(request);
  }};
  std::shared_ptr<const storage::Storage> storage_ = storage::bucket_storage(server_);
};

TEST_F(TreeListingTest, HasTheSamplesOfALocalCopyInItsOrder) {
  const auto local = open({}, local_.path("local/train"));
  for (const char* source : {"s3://bucket/train/", "s3://bucket/train"}) {
    const auto remote = open(options(), source);
    EXPECT_EQ(samples_of(*remote), samples_of(*local));
    EXPECT_EQ(remote->classes(), local->classes());
    EXPECT_EQ(remote->fingerprint(), local->fingerprint());
  }
  EXPECT_EQ(local->size(), 8u);
  EXPECT_EQ(inspected(kTrain, options()), inspected(local_.path("local/train")));
  const auto seen = format::inspect(kTrain, options());
  EXPECT_EQ(seen->bytes, format::inspect(local_.path("local/train"), {})->bytes);
}

TEST_F(TreeListingTest, PrefetchedPiecesAreHeldToWhatWasListed) {
  const auto format = open(options());
  std::vector<storage::Piece> pieces;
  ASSERT_TRUE(format->find_pieces(0, pieces));
  ASSERT_TRUE(pieces[0].version);
  EXPECT_EQ(pieces[0].version->bytes, 3u);
  EXPECT_NE(pieces[0].version->tag, 0u);
  EXPECT_EQ(pieces[0].path, "s3://bucket/train/cat/1 + 1=2.jpg");
}

TEST_F(TreeListingTest, IsKeptUntilItIsTooOldOrAskedForAgain) {
  const auto first = open(options());
  EXPECT_EQ(first->summary(), "");
  const std::size_t before = server_.requests().size();
  const auto second = open(options());
  EXPECT_NE(second->summary().find("listing_age=0"), std::string::npos) << second->summary();
  EXPECT_EQ(server_.requests().size(), before) << "no request is sent";
  EXPECT_EQ(samples_of(*second), samples_of(*first));
  bucket_.put("train/cat/0.jpg", "came later");
  EXPECT_EQ(open(options())->size(), 8u);
  OpenOptions again = options();
  again.listing_age = std::chrono::seconds(0);
  EXPECT_EQ(open(again)->size(), 9u);
  EXPECT_EQ(open(options())->size(), 9u) << "the fresh one is kept";
  EXPECT_EQ(format::inspect(kTrain, options())->samples, 9u);
}

TEST_F(TreeListingTest, OfAnotherEndpointIsAnotherListing) {
  const auto here = open(options());
  storage::Bucket other;
  other.put("train/fox/1.jpg", "x");
  HttpServer elsewhere([&](const ServedRequest& request) { return other.answer(request); });
  OpenOptions there = options();
  there.storage = storage::bucket_storage(elsewhere);
  EXPECT_EQ(open(there)->classes(), std::vector<std::string>{"fox"});
  EXPECT_EQ(open(options())->classes(), here->classes());
}

TEST_F(TreeListingTest, AnObjectThatChangedOrWentIsAnErrorAndTheListingIsMadeAgain) {
  for (const bool goes : {true, false}) {
    const auto format = open(options());
    const std::string key = goes ? "train/dog+x y=z/1.jpg" : "train/cat-like/&<>'\".jpg";
    goes ? bucket_.remove(key) : bucket_.put(key, "another");
    std::uint64_t index = 0;
    while ("s3://bucket/" + key != format->where(index).shard) ++index;
    memory::Record record;
    record.most_bytes = 1000;
    const auto read = format->read(index, record);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kStorage);
    EXPECT_NE(read.error().message().find(key), std::string::npos) << read.error().message();
    EXPECT_NE(read.error().message().find(goes ? "404" : "changed"), std::string::npos) << read.error().message();
    const auto again = open(options());
    EXPECT_EQ(again->size(), 7u);
    EXPECT_NE(samples_of(*again), "");
  }
}

TEST_F(TreeListingTest, ErrorsSayWhatIsMissing) {
  EXPECT_NE(error_of("s3://bucket/nothing/").find("no stored name begins with 's3://bucket/nothing/'"),
            std::string::npos)
      << error_of("s3://bucket/nothing/");
  bucket_.put("empty/", "");
  EXPECT_NE(error_of("s3://bucket/empty/").find("no stored name begins"), std::string::npos);
  bucket_.put("flat/1.jpg", "x");
  EXPECT_NE(error_of("s3://bucket/flat/").find("images but no class folders"), std::string::npos);
  bucket_.put("marked/cat/1.jpg", "x");
  bucket_.put("marked/dog/", "");
  EXPECT_NE(error_of("s3://bucket/marked/").find("'dog' contains no image"), std::string::npos);
  bucket_.put("doubled//1.jpg", "x");
  EXPECT_NE(error_of("s3://bucket/doubled/").find("two slashes"), std::string::npos);
  refuses_with_ = 403;
  for (const char* part : {"403", "AccessDenied", "s3:ListBucket", "s3://bucket/train"})
    EXPECT_NE(error_of(kTrain).find(part), std::string::npos) << error_of(kTrain);
}

TEST_F(TreeListingTest, ManyClassesAreListedSideBySide) {
  constexpr int kClasses = base::rounds(100), kEach = 1000, kAll = kClasses * kEach;
  for (int label = 0; label < kClasses; ++label)
    for (int i = 0; i < kEach; ++i)
      bucket_.put("many/" + std::to_string(1000 + label) + "/" + std::to_string(10'000 + i) + ".jpg", "x");
  const auto format = open(options(), "s3://bucket/many/");
  EXPECT_EQ(format->size(), std::size_t{kAll});
  EXPECT_EQ(format->classes().size(), std::size_t{kClasses});
  EXPECT_EQ(format->where(0).key, "1000/10000.jpg");
  EXPECT_EQ(format->where(kAll - 1).key, std::to_string(999 + kClasses) + "/10999.jpg");
  EXPECT_LE(listings(), std::size_t{kClasses + 3}) << "one for the classes, and one for each";
  bucket_.put("many/1000/20000.jpg", "x");
  OpenOptions again = options();
  again.listing_age = std::chrono::seconds(0);
  EXPECT_EQ(open(again, "s3://bucket/many/")->size(), std::size_t{kAll + 1}) << "of two pages";
}

TEST_F(TreeListingTest, PatternsHaveTheSamplesOfALocalCopy) {
  for (const char* path : {"images/a/1 1.jpg", "images/a/2.jpg", "masks/a/1 1.png", "masks/a/2.png", "2.txt"}) {
    local_.write("local/pairs/" + std::string(path), path);
    bucket_.put("pairs/" + std::string(path), path);
  }
  const std::vector<std::string> fields{"images/{key}.jpg", "masks/{key}.png"};
  const auto local = open({.fields = fields}, local_.path("local/pairs"));
  OpenOptions asked = options();
  asked.fields = fields;
  const auto remote = open(asked, "s3://bucket/pairs/");
  ASSERT_EQ(remote->size(), 2u);
  EXPECT_EQ(remote->fingerprint(), local->fingerprint());
  memory::Record record;
  record.most_bytes = 1000;
  ASSERT_TRUE(remote->read(0, record));
  const auto mask = record.fields[1].bytes;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mask.data()), mask.size()), "masks/a/1 1.png");
  const std::size_t before = server_.requests().size();
  EXPECT_EQ(open(asked, "s3://bucket/pairs/")->size(), 2u);
  EXPECT_EQ(server_.requests().size(), before);
}

TEST_F(TreeListingTest, CopiesInACacheAreReadWithoutARequest) {
  OpenOptions asked = options();
  asked.storage = *cache::through_cache(storage_, local_.path("cache"), {});
  const std::string samples = samples_of(*open(asked));
  const std::size_t before = server_.requests().size();
  EXPECT_EQ(samples_of(*open(asked)), samples);
  EXPECT_EQ(server_.requests().size(), before) << "the listing has said which versions there are";
}

class ListedHttpTest : public testing::Test {
 protected:
  ListedHttpTest() {
    files_["/train%2B/feedline-listing.txt"] =
        "feedline-listing 1 4\n3 cat/a%20b.jpg\n5 dog/%C3%A9/1.jpg\n7 read.me\n0 fox/\n";
    files_["/train%2B/cat/a%20b.jpg"] = "one";
    files_["/train%2B/dog/%C3%A9/1.jpg"] = "three";
  }
  OpenOptions options() const {
    return {.index_directory = folder_.path("kept"), .storage = std::make_shared<storage::HttpStorage>()};
  }

  storage::TemporaryFolder folder_;
  std::map<std::string, std::string> files_;
  HttpServer server_{[this](const ServedRequest& request) {
    const auto found = files_.find(request.target);
    return found == files_.end() ? ServedAnswer{.status = 404} : storage::serve(request, found->second, "\"e\"");
  }};
};

TEST_F(ListedHttpTest, AFolderIsReadByTheListingInIt) {
  const std::string source = server_.url("/train%2B/");
  const auto listed = open_records(source, options());
  ASSERT_FALSE(listed) << "fox/ has no image";
  EXPECT_NE(listed.error().message().find("'fox' contains no image"), std::string::npos) << listed.error().message();
  files_["/train%2B/feedline-listing.txt"] = "feedline-listing 1 3\n3 cat/a%20b.jpg\n5 dog/%C3%A9/1.jpg\n7 read.me\n";
  const auto format = open_records(source, options());
  ASSERT_TRUE(format) << format.error().message();
  ASSERT_EQ((*format)->size(), 2u);
  EXPECT_EQ((*format)->where(1).key, "dog/\xc3\xa9/1.jpg");
  memory::Record record;
  record.most_bytes = 1000;
  ASSERT_TRUE((*format)->read(1, record));
  EXPECT_EQ(record.fields[0].bytes.size(), 5u);
  const std::size_t before = server_.requests().size();
  ASSERT_TRUE(open_records(source, options()));
  EXPECT_EQ(server_.requests().size(), before);
}

TEST_F(ListedHttpTest, WithoutAListingItSaysHowToMakeOne) {
  const auto format = open_records(server_.url("/other/"), options());
  ASSERT_FALSE(format);
  EXPECT_NE(format.error().message().find("`feedline index FOLDER`"), std::string::npos) << format.error().message();
}

TEST(ListingFile, WhatIsCutOrLeadsElsewhereIsNone) {
  const std::string whole = "feedline-listing 1 2\n1 a/b.jpg\n2 c\n";
  EXPECT_EQ(storage::parse_listing_file(whole)->objects.size(), 2u);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(storage::parse_listing_file(whole.substr(0, bytes))) << bytes;
  for (const char* line :
       {"1 ../a\n", "1 /a\n", "1 a//b\n", "1 .\n", "x a\n", "1a\n", "1 %zz\n", "-1 a\n", "1 \n", "\n"})
    EXPECT_FALSE(storage::parse_listing_file("feedline-listing 1 1\n" + std::string(line))) << line;
  EXPECT_FALSE(storage::parse_listing_file("<html>\n"));
}

}  // namespace
}  // namespace feedline::format
