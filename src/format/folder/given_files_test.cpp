// SPDX-License-Identifier: Apache-2.0
#include "format/folder/given_files.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

class GivenFilesTest : public testing::Test {
 protected:
  std::string read(std::uint64_t index) {
    const auto done = files_.read(index, record_);
    if (!done) return "error: " + done.error().what;
    const auto bytes = record_.fields[0].bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string file(const std::string& name, const std::string& content) {
    folder_.write(name, content);
    return folder_.path(name);
  }

  storage::TemporaryFolder folder_;
  GivenFiles files_{storage::local_storage()};
  memory::Record record_;
};

TEST_F(GivenFilesTest, ReadsWhatWasAddedUntilItIsForgotten) {
  const std::uint64_t first = files_.add({{file("a", "one")}, {file("b", "two")}});
  const std::uint64_t second = files_.add({{file("c", "three")}});
  EXPECT_EQ(read(first), "one");
  EXPECT_EQ(read(first + 1), "two");
  EXPECT_EQ(read(second), "three");
  EXPECT_EQ(files_.where(first + 1).key, folder_.path("b"));
  files_.forget(first);
  EXPECT_TRUE(read(first + 1).starts_with("error: file 1 was not added"));
  EXPECT_EQ(read(second), "three");
  files_.forget_all();
  EXPECT_TRUE(read(second).starts_with("error: "));
  EXPECT_GT(files_.add({{"x"}}), second) << "an index is never given twice";
}

TEST_F(GivenFilesTest, FilesInMemoryAreNotReadAndLiveAsLongAsTheirOwner) {
  auto content = std::make_shared<std::string>("encoded");
  const std::weak_ptr<std::string> watched = content;
  std::vector<storage::Piece> pieces;
  {
    GivenFiles files{storage::local_storage()};
    files.keep(content);
    const std::span bytes = std::as_bytes(std::span(*content));
    const std::uint64_t first = files.add({{"row 7", bytes}, {file("b", "two")}, {"row 8", bytes.first(0)}});
    content.reset();
    ASSERT_TRUE(files.read(first, record_));
    EXPECT_EQ(record_.fields[0].bytes.data(), bytes.data());
    EXPECT_EQ(record_.fields[0].bytes.size(), bytes.size());
    EXPECT_EQ(files.where(first).key, "row 7");
    EXPECT_TRUE(files.read(first + 1, record_));
    EXPECT_EQ(files.read(first + 2, record_).error().what, "an empty file");
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(files.find_pieces(first + i, pieces));
    ASSERT_EQ(pieces.size(), 1U) << "of files in memory nothing is fetched";
    EXPECT_EQ(pieces[0].path, folder_.path("b"));
    files.forget_all();
    EXPECT_FALSE(watched.expired()) << "a thread may still read";
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(GivenFilesTest, MissingAndEmptyFilesAreErrors) {
  const std::uint64_t first = files_.add({{folder_.path("nowhere")}, {file("empty", "")}});
  EXPECT_TRUE(read(first).starts_with("error: "));
  EXPECT_TRUE(read(first + 1).starts_with("error: an empty file"));
  EXPECT_TRUE(read(first + 2).starts_with("error: file 2"));
}

}  // namespace
}  // namespace feedline::format
