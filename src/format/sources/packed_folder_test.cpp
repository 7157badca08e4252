// SPDX-License-Identifier: Apache-2.0
#include "format/sources/packed_folder.h"

#include <gtest/gtest.h>

#include "feedline/stored_source.h"
#include "format/sources/folder_files.h"
#include "format/tar/tar_format_fixture.h"

namespace feedline::format {
namespace {

using Names = std::vector<std::string>;

class PackedFolderTest : public TarFormatTest {
 protected:
  // Writes two shards and a manifest that lists the second shard first.
  void pack(const std::string& rest = R"("complete": true)") const {
    write(tar_of({{"a", "\xff\xd8\xff", 1}}), "packed/000000.tar");
    write(tar_of({{"b", "\xff\xd8\xff", 2}, {"c", "\xff\xd8\xff", 3}}), "packed/000001.tar");
    manifest(R"({"version": 2, "arguments": {"shards": [{"name": "no.tar"}]}, "shards": [
                {"name": "000001.tar", "samples": 2}, {"name": "\u0030\u00300000.tar", "samples": 1}], )" +
             rest + "}");
  }
  void manifest(const std::string& text) const { folder_.write("packed/feedline-pack.json", text); }
  std::string packed(const std::string& name = "") const { return folder_.path("packed" + name); }
  Names keys(const std::string& source) const {
    const auto format = opened(source, {"cls"});
    Names found;
    for (std::uint64_t i = 0; format && i < format->size(); ++i) found.push_back(format->where(i).key);
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Storages, PackedFolderTest, ::testing::ValuesIn(kAllReads), name_of_reads);

TEST_P(PackedFolderTest, OpensByItsNameInTheOrderOfItsManifest) {
  pack();
  folder_.write("packed/unnamed.tar", "no tar");
  EXPECT_EQ(keys(packed()), (Names{"b", "c", "a"}));
  EXPECT_EQ(keys(packed("/")), (Names{"b", "c", "a"}));
  folder_.write("packed/folder/x.txt", "a folder of another program");
  EXPECT_EQ(keys(packed()), (Names{"b", "c", "a"}));
  EXPECT_EQ(keys(packed("/000000.tar") + "::" + packed()), (Names{"a", "b", "c", "a"}));
  EXPECT_EQ(inspect(packed(), options())->samples, 3u);
}

TEST_P(PackedFolderTest, ItsShardsAreThoseOfASource) {
  pack();
  const auto source = StoredSource::open(packed() + "::" + packed("/000000.tar"));
  ASSERT_TRUE(source);
  const auto shards = source->shards();
  ASSERT_TRUE(shards) << shards.error().message();
  EXPECT_EQ(shards->names(), (Names{packed("/000001.tar"), packed("/000000.tar"), packed("/000000.tar")}));
  EXPECT_EQ(source->names(), (Names{packed(), packed("/000000.tar")}));
}

TEST_P(PackedFolderTest, OneThatIsNotFinishedIsRefused) {
  for (const std::string rest : {R"("complete": false)", R"("complete": true, "part": {"first": 0})"}) {
    pack(rest);
    const auto format = open(packed(), options());
    ASSERT_FALSE(format) << rest;
    EXPECT_EQ(format.error().code, ErrorCode::kConfig);
    EXPECT_CONTAINS(format.error().what, "did not finish");
  }
  pack(R"("complete": true, "part": null)");
  EXPECT_EQ(keys(packed()).size(), 3u);
  manifest(R"({"shards": [], "complete": true})");
  EXPECT_CONTAINS(open(packed(), options()).error().what, "without a shard");
}

TEST_P(PackedFolderTest, RangesAndUnfinishedOnesWithoutAManifestAreRefused) {
  write(tar_of({{"a", "\xff\xd8\xff", 1}}), "ranges/000000.tar");
  folder_.write("ranges/feedline-pack.000000-000001.json", "{}");
  EXPECT_CONTAINS(open(folder_.path("ranges"), options()).error().what, "feedline merge-index");
  write(tar_of({{"a", "\xff\xd8\xff", 1}}), "begun/000000.tar");
  folder_.write("begun/feedline-pack.unfinished.json", "{}");
  EXPECT_CONTAINS(open(folder_.path("begun"), options()).error().what, "did not finish");
}

TEST_P(PackedFolderTest, ADamagedManifestIsNamed) {
  pack();
  for (const std::string text :
       {"", "{", "[]", R"({"shards": [{"name": "000000.tar"}]})", R"({"complete": true})",
        R"({"shards": [{}], "complete": true})", R"({"shards": ["000000.tar"], "complete": true})",
        R"({"shards": [{"name": "../000000.tar"}], "complete": true})",
        R"({"shards": [{"name": ""}], "complete": true})", R"({"shards": [{"name": "a::b.tar"}], "complete": true})",
        R"({"shards": [{"name": "000000.tar"}], "complete": 1})",
        R"({"shards": [{"name": "000000.tar"}], "complete": true} x)"}) {
    manifest(text);
    const auto format = open(packed(), options());
    ASSERT_FALSE(format) << text;
    EXPECT_EQ(format.error().code, ErrorCode::kData) << text;
    EXPECT_EQ(format.error().where.dataset, packed());
    EXPECT_EQ(format.error().where.shard, packed("/feedline-pack.json"));
    EXPECT_EQ(format.error().where.stage, "format");
  }
}

TEST_P(PackedFolderTest, UnfinishedFoldersOfOtherShardsAreRefused) {
  const auto is_parquet = [](std::string_view name) { return name.ends_with(".parquet"); };
  const auto files = [&] { return files_of_folder(packed(), *options().storage, is_parquet, ".parquet"); };
  folder_.write("packed/000000.parquet", "");
  manifest(R"({"shards": [{"name": "000000.parquet"}], "complete": false})");
  ASSERT_FALSE(files());
  EXPECT_CONTAINS(files().error().what, "did not finish");
  manifest(R"({"shards": [{"name": "000000.parquet"}], "complete": true})");
  ASSERT_TRUE(files());
  EXPECT_EQ(*files(), (Names{packed("/000000.parquet")}));
}

TEST_P(PackedFolderTest, OtherShardsAreFoundByTheirFormats) {
  manifest(R"({"shards": [{"name": "shard.00000.mds"}], "complete": true})");
  const auto found = packed_folder(packed(), *options().storage);
  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->has(".tar"));
  EXPECT_FALSE(packed_folder(folder_.path(), *options().storage).value());
  EXPECT_EQ(with_packed_tars({packed(), "x.tar"}, *options().storage).value(), (Names{packed(), "x.tar"}));
}

}  // namespace
}  // namespace feedline::format
