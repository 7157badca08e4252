// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_format.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "format/format_contract.h"
#include "format/tar/tar_format_fixture.h"
#include "storage/manifest_storage.h"
#include "storage/short_reads_storage.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;
using Dialect = TarWriter::Dialect;

std::string store_one(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.tar", tar_of(samples));
}

// Writes three shards, the middle one without samples, and returns them in order as a brace list.
std::string store_list(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  folder.write("data-08.tar", tar_of({samples.begin(), half}, Dialect::kGnu));
  folder.write("data-09.tar", TarWriter().finish(20));
  folder.write("data-10.tar", tar_of({half, samples.end()}, Dialect::kPax));
  return folder.path("data-{08..10}.tar");
}

INSTANTIATE_TEST_SUITE_P(
    Tar, FormatContract,
    ::testing::Values(FormatUnderTest{"tar", "tar", store_one, storage::local_storage},
                      FormatUnderTest{"tar_mapped", "tar", store_one, storage::mapped_storage},
                      FormatUnderTest{"tar_short_reads", "tar", store_one, storage::short_reads_storage},
                      FormatUnderTest{"tar_list", "tar", store_list, storage::local_storage},
                      FormatUnderTest{"tar_list_short_reads", "tar", store_list, storage::short_reads_storage}),
    name_of_format);

INSTANTIATE_TEST_SUITE_P(Storages, TarFormatTest, ::testing::ValuesIn(kAllReads), name_of_reads);

TEST_P(TarFormatTest, EveryCutIsAnErrorNeverAShorterDataset) {
  const auto samples = some_samples(2, 2);
  const std::string archive = tar_of(samples);
  const std::size_t whole = archive.size();  // ends with exactly two zero blocks
  for (std::size_t length = 0; length < whole; length += length % 512 == 0 ? 100 : 412) {
    const Error error = refused(archive.substr(0, length));
    EXPECT_EQ(error.code, ErrorCode::kData) << length << error.message();
    EXPECT_EQ(error.where.shard, folder_.path("x.tar"));
    EXPECT_TRUE(error.where.offset.has_value() && *error.where.offset <= length) << length;
    EXPECT_NE(findings(archive.substr(0, length)).find(":error"), std::string::npos) << length;
  }
  EXPECT_EQ(opened(write(archive))->size(), samples.size());
  EXPECT_EQ(opened(write(archive + std::string(8704, '\0')))->size(), samples.size());  // a full 10 KiB record
}

TEST_P(TarFormatTest, GivesFilesThatNobodyAskedFor) {
  const std::string large(200'000, 'x');
  const auto format =
      opened(write(TarWriter().add("a.JPG", "i").add("a.seg.png", large).add("a.json", "").add("a.cls", "3").finish()));
  const auto stored = format->files(0);
  ASSERT_TRUE(stored) << stored.error().message();
  std::string listed = stored->key;
  for (const auto& file : stored->files) listed += " " + file.extension + ":" + std::to_string(file.bytes.size());
  EXPECT_EQ(listed, "a jpg:1 seg.png:200000 json:0 cls:1");
}

TEST_P(TarFormatTest, FilesOfAShardThatChangedAreAnError) {
  const std::string path = write(TarWriter().add("a.jpg", "i").add("a.cls", "3").finish());
  const auto format = opened(path);
  write(TarWriter().add("b.jpg", std::string(600, 'i')).add("b.cls", "3").finish());
  const auto stored = format->files(0);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().where.key, "a");
  EXPECT_CONTAINS(stored.error().what, "changed");
}

TEST_P(TarFormatTest, ACutInsideAMemberNamesIt) {
  const std::string archive = TarWriter().add("a/1.jpg", std::string(2000, 'x')).finish(0);
  const Error error = refused(archive.substr(0, 1024));
  EXPECT_CONTAINS(error.what, "a/1.jpg");
  EXPECT_EQ(error.where.offset, 0u);
}

TEST_P(TarFormatTest, DuplicateSuffixesAreAnError) {
  const std::string archive =
      TarWriter().add("1.jpg", "x").add("1.cls", "1").add("1.JPG", "y").add("2.jpg", "z").add("2.cls", "2").finish();
  const Error error = refused(archive);
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.where.key, "1");
  EXPECT_EQ(error.where.offset, 5 * 512u);
  EXPECT_CONTAINS(error.what, "'jpg'");
  EXPECT_EQ(findings(archive), "duplicate_suffix:error");
}

TEST_P(TarFormatTest, MembersOfOneKeyMustFollowOneAnother) {
  const std::string archive =
      TarWriter().add("1.jpg", "x").add("2.jpg", "y").add("2.cls", "2").add("1.cls", "1").finish();
  const Error error = refused(archive);
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.where.key, "1");
  EXPECT_CONTAINS(error.what, "bytes 512 and 3584");
  EXPECT_EQ(findings(archive), "key_not_adjacent:error missing_field:error missing_field:error");
}

TEST_P(TarFormatTest, KeysMayComeAgainInAnotherShard) {
  const std::string archive = TarWriter().add("1.jpg", "x").finish();
  const std::string source = write(archive, "a.tar") + "::" + write(archive, "b.tar");
  EXPECT_EQ(opened(source)->size(), 2u);
  EXPECT_EQ(opened(source)->where(1).shard, folder_.path("b.tar"));
}

TEST_P(TarFormatTest, SkipsWhatWebDatasetSkipsAndSaysSo) {
  const std::string archive = TarWriter()
                                  .add("folder/", "", '5')
                                  .add("__meta__/info.json", "{}")
                                  .add("README", "x")
                                  .add("a.b/noext", "x")
                                  .add("1.jpg", "x")
                                  .add("link.jpg", "", '2')
                                  .add("1.cls", "1")
                                  .add("2.jpg", "x")
                                  .add("2.__bad__", "yes")
                                  .finish();
  EXPECT_EQ(opened(write(archive))->size(), 1u);
  EXPECT_EQ(findings(archive),
            "member_without_dot:warning member_without_dot:warning not_regular:warning "
            "marked_bad:warning reserved_name:note");
}

TEST_P(TarFormatTest, RefusesSparseMembersByName) {
  const std::string gnu = TarWriter(Dialect::kGnu).add("1.jpg", "x", 'S').add("2.jpg", "y").finish();
  EXPECT_CONTAINS(refused(gnu).what, "'1.jpg' is stored as a sparse file");
  EXPECT_EQ(findings(gnu), "sparse_member:error");
  const std::string pax =
      TarWriter(Dialect::kPax).pax(TarWriter::pax_record("GNU.sparse.name", "3.jpg")).add("made/up.jpg", "x").finish();
  EXPECT_CONTAINS(refused(pax).what, "'3.jpg' is stored as a sparse file");
}

TEST_P(TarFormatTest, RefusesWhatIsNoTar) {
  EXPECT_CONTAINS(refused("").what, "the file is empty, so it is not a tar file");
  EXPECT_CONTAINS(refused(std::string(4000, 't')).what, "not a tar file");
  EXPECT_CONTAINS(refused("\xff\xd8\xff" + std::string(4000, 't')).what, "an image");
  EXPECT_CONTAINS(refused("\x28\xb5\x2f\xfd" + std::string(4000, 't')).what, "zstd");
  const Error none = refused(TarWriter().finish());
  EXPECT_EQ(none.code, ErrorCode::kConfig);
  EXPECT_CONTAINS(none.what, "no samples");
  EXPECT_EQ(findings(TarWriter().finish()), "no_field:error no_samples:warning");
}

TEST_P(TarFormatTest, ADamagedHeaderIsAnErrorAndTheNextShardIsStillInspected) {
  const std::string good = tar_of(some_samples(1, 3));
  std::string bad = good;
  bad[1024 + 3] = static_cast<char>(~bad[1024 + 3]);
  write(bad, "0.tar");
  write(TarWriter().add("x", "").add("z/9.jpg", "x").add("z/9.cls", "3").finish(), "1.tar");
  const std::string source = folder_.path("{0..2}.tar");
  const auto format = open(source, options());
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().where.shard, folder_.path("0.tar"));
  EXPECT_EQ(inspected(source, options()),
            "bad_checksum:error unreadable_file:error missing_field:error member_without_dot:warning");
}

TEST_P(TarFormatTest, InspectionReadsLabelsAsAReaderDoes) {
  const std::string archive = TarWriter()
                                  .add("1.jpg", "x")
                                  .add("1.cls", " 7\n")
                                  .add("2.jpg", "x")
                                  .add("2.cls", "cat")
                                  .add("3.jpg", "x")
                                  .add("3.cls", std::string(100, ' '))
                                  .finish();
  EXPECT_EQ(findings(archive), "not_an_integer:error not_an_integer:error");
  const auto format = opened(write(archive));
  memory::Record record;
  EXPECT_TRUE(format->read(0, record));
  EXPECT_FALSE(format->read(1, record));
  EXPECT_FALSE(format->read(2, record));
  EXPECT_EQ(inspected(write(archive),
                      [&] {
                        OpenOptions images = options();
                        images.fields = {"jpg"};
                        return images;
                      }()),
            "unread_member:warning");
}

TEST_P(TarFormatTest, InspectionTellsMembersThatNobodyReads) {
  const std::string archive = TarWriter()
                                  .add("1.jpg", "x")
                                  .add("1.cls", "1")
                                  .add("1.txt", "a cat")
                                  .add("2.png", "x")
                                  .add("2.jpg", "x")
                                  .add("2.cls", "1")
                                  .add("2.txt", "a dog")
                                  .finish();
  EXPECT_EQ(findings(archive), "unread_member:warning unread_member:warning");
  const auto inspection = inspect(write(archive), options());
  ASSERT_TRUE(inspection);
  EXPECT_CONTAINS(inspection->findings[0].text, "members ending in .png are not read, 1 in all");
  EXPECT_CONTAINS(inspection->findings[1].text, "members ending in .txt are not read, 2 in all");
}

TEST_P(TarFormatTest, ClassNamesStandInTheShards) {
  const auto shard = [&](const std::string& names, const std::string& name) {
    TarWriter writer;
    if (!names.empty()) writer.add("__classes__", names);
    return write(writer.add("1.jpg", "x").add("1.cls", "1").finish(), name);
  };
  using Names = std::vector<std::string>;
  const Names expected{"apple", "50% of\nit", "%%0"};
  const std::string first = shard("apple\n50%25 of%0Ait\n%25%0", "0.tar");
  const auto classes = [&](const std::string& source) { return opened(source)->classes(); };
  EXPECT_EQ(classes(first), expected);
  EXPECT_EQ(classes(first), expected);  // from its stored index
  EXPECT_EQ(inspected(first, options()), "");
  const auto inspection = inspect(first, options());
  ASSERT_EQ(inspection->classes.size(), 3u);
  EXPECT_EQ(inspection->classes[1].count, 1u);
  const std::string other = shard("apple\nbirch\n", "1.tar"), none = shard("", "2.tar");
  EXPECT_EQ(classes(first + "::" + other), Names());
  EXPECT_EQ(classes(first + "::" + none), Names());
  EXPECT_EQ(classes(none + "::" + first), Names());
  EXPECT_EQ(inspected(first + "::" + other, options()), "class_names_differ:warning");
  EXPECT_EQ(inspected(none + "::" + first, options()), "class_names_differ:warning");
  EXPECT_EQ(classes(none), Names());
}

TEST_P(TarFormatTest, TellsMissingFieldsBySample) {
  const std::string archive =
      TarWriter().add("1.jpg", "x").add("1.cls", "1").add("2.jpg", "y").add("3.cls", "3").add("3.png", "z").finish();
  const auto format = opened(write(archive));
  memory::Record record;
  EXPECT_TRUE(format->read(0, record));
  EXPECT_TRUE(format->read(2, record));
  const auto done = format->read(1, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_EQ(done.error().where.key, "2");
  EXPECT_CONTAINS(done.error().what, "'label'");
  EXPECT_EQ(findings(archive), "missing_field:error");
}

TEST_P(TarFormatTest, FieldsByDefaultAndByChoice) {
  const std::string archive = TarWriter()
                                  .add("1.json", "{}")
                                  .add("1.jpg", "first")
                                  .add("1.png", "second")
                                  .add("1.seg.png", std::string(200'000, 's'))
                                  .add("1.id", " 42\n")
                                  .finish();
  const std::string source = write(archive);
  memory::Record record;
  auto format = opened(source);
  ASSERT_TRUE(format->read(0, record));
  EXPECT_EQ(record.fields[0].bytes.size(), 5u);
  EXPECT_EQ(record.fields[1].value, 42);
  format = opened(source, {"webp;png", "seg.png", "cls;id", "jpg"});
  ASSERT_EQ(format->fields().size(), 4u);
  EXPECT_EQ(format->fields()[0].name, "webp");
  ASSERT_TRUE(format->read(0, record));
  EXPECT_EQ(record.fields[0].bytes.size(), 6u);
  EXPECT_EQ(record.fields[1].bytes.size(), 200'000u);
  EXPECT_EQ(record.fields[1].bytes[199'999], std::byte{'s'});
  EXPECT_EQ(record.fields[2].value, 42);
  EXPECT_EQ(record.fields[3].bytes[0], std::byte{'f'});
  EXPECT_EQ(format->where(0).offset, 5 * 512u);  // of the png, the first image field
  // a large member in between is not fetched
  format = opened(source, {"png", "id"});
  ASSERT_TRUE(format->read(0, record));
  EXPECT_EQ(record.bytes_read, 6u + 4u);
  EXPECT_EQ(record.fields[1].value, 42);
}

TEST_P(TarFormatTest, WithoutLabelsThereIsTheImageAlone) {
  const auto format = opened(write(TarWriter().add("1.jpg", "x").add("1.txt", "a cat").add("2.webp", "y").finish()));
  ASSERT_EQ(format->fields().size(), 1u);
  EXPECT_EQ(format->fields()[0].name, "image");
}

TEST_P(TarFormatTest, SamplesThatLackAFieldAreErrorsOrLeftOutOrSaySo) {
  const std::string source = write(TarWriter()
                                       .add("1.jpg", "one")
                                       .add("1.txt", "")
                                       .add("2.jpg", "two")
                                       .add("3.txt", "three")
                                       .add("4.jpg", "four")
                                       .add("4.txt", "4")
                                       .finish());
  OpenOptions chosen = options();
  chosen.fields = {"jpg", "txt"};
  const auto with = [&](Missing missing) {
    chosen.missing = missing;
    const auto format = open_records(source, chosen);
    EXPECT_TRUE(format) << format.error().message();
    return *format;
  };
  memory::Record record;
  const auto error = with(Missing::kError);
  EXPECT_EQ(error->size(), 4u);
  EXPECT_TRUE(error->read(0, record)) << "text may be empty";
  EXPECT_FALSE(error->read(1, record));
  EXPECT_FALSE(error->fields()[0].may_be_absent);

  const auto skip = with(Missing::kSkip);
  ASSERT_EQ(skip->size(), 2u);
  EXPECT_EQ(skip->where(1).key, "4");
  ASSERT_TRUE(skip->read(1, record));
  EXPECT_EQ(record.fields[1].bytes.size(), 1u);
  EXPECT_EQ(skip->shard_ends(), std::vector<std::uint64_t>{2});
  EXPECT_CONTAINS(skip->summary(), "2 samples were omitted");
  EXPECT_EQ(inspected(source, chosen), "missing_field:warning missing_field:warning");

  const auto none = with(Missing::kNone);
  ASSERT_EQ(none->size(), 4u);
  EXPECT_TRUE(none->fields()[0].may_be_absent);
  ASSERT_TRUE(none->read(1, record));
  EXPECT_FALSE(record.fields[0].absent);
  EXPECT_EQ(record.fields[0].bytes.size(), 3u);
  EXPECT_TRUE(record.fields[1].absent);
  ASSERT_TRUE(none->read(2, record));
  EXPECT_TRUE(record.fields[0].absent);
  EXPECT_FALSE(record.fields[1].absent);
  EXPECT_EQ((std::set<std::uint64_t>{error->fingerprint(), skip->fingerprint(), none->fingerprint()}).size(), 3u);

  chosen.missing = Missing::kSkip;
  chosen.fields = {"jpg", "txt", "cls"};
  const std::string lacking = write(TarWriter().add("1.jpg", "x").add("2.txt", "y").add("3.cls", "1").finish());
  const auto refused = open(lacking, chosen);
  ASSERT_FALSE(refused);
  EXPECT_CONTAINS(refused.error().what, "omits all samples");
}

TEST_P(TarFormatTest, FieldsThatNoSampleHasAreAConfigError) {
  OpenOptions chosen = options();
  chosen.fields = {"jpg", "cls"};
  const std::string source = write(TarWriter().add("1.jpg", "x").add("1.txt", "a cat").finish());
  const auto format = open(source, chosen);
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kConfig);
  EXPECT_CONTAINS(format.error().what, "'cls'");
  EXPECT_CONTAINS(format.error().what, "jpg, txt");
  EXPECT_EQ(inspected(source, chosen), "no_field:error");
  const Error none = refused(TarWriter().add("1.txt", "a cat").finish());
  EXPECT_EQ(none.code, ErrorCode::kConfig);
  EXPECT_CONTAINS(none.what, "'image'");
}

TEST_P(TarFormatTest, LabelsThatAreNoIntegersAreErrorsOfTheirSample) {
  const auto format =
      opened(write(TarWriter().add("1.jpg", "x").add("1.cls", "cat").add("2.jpg", "x").add("2.cls", "").finish()));
  memory::Record record;
  for (const std::uint64_t index : {0, 1}) {
    const auto done = format->read(index, record);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kData);
    EXPECT_CONTAINS(done.error().what, "'label'");
    EXPECT_EQ(done.error().where.offset, index == 0 ? 1536u : 3584u);  // of the label, not of the image
  }
}

TEST_P(TarFormatTest, KeepsAnIndexAndRebuildsItWhenStaleOrDamaged) {
  const std::string source = write(tar_of(some_samples(2, 3)));
  const std::string index = folder_.path(".feedline/x.tar.feedline-index");
  const std::uint64_t fingerprint = opened(source)->fingerprint();
  ASSERT_TRUE(std::filesystem::exists(index));
  const std::string original = TemporaryFolder::read(index);
  const auto written = std::filesystem::last_write_time(index);
  EXPECT_EQ(opened(source)->fingerprint(), fingerprint);
  EXPECT_EQ(std::filesystem::last_write_time(index), written) << "was rebuilt";
  for (const std::string& damaged :
       {std::string(), original.substr(0, 100), original + "x", std::string(original.size(), 'x')}) {
    folder_.write(".feedline/x.tar.feedline-index", damaged);
    EXPECT_EQ(opened(source)->fingerprint(), fingerprint);
    EXPECT_EQ(TemporaryFolder::read(index), original);
  }
  write(tar_of(some_samples(2, 4)));
  EXPECT_EQ(opened(source)->size(), 8u);
}

TEST_P(TarFormatTest, AShardThatChangesAfterOpeningIsAnError) {
  const auto samples = some_samples(1, 3);
  const std::string source = write(tar_of(samples));
  memory::Record record;
  for (const bool read_before : {false, true}) {
    write(tar_of(samples));
    const auto format = opened(source);
    if (read_before) {
      ASSERT_TRUE(format->read(0, record));
    }
    std::filesystem::resize_file(source, 700);
    const auto done = format->read(2, record);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kStorage);
    EXPECT_EQ(done.error().where.record, 2u);
    EXPECT_EQ(done.error().where.shard, source);
  }
}

TEST_P(TarFormatTest, AShardReplacedByOneOfItsSizeIsAnError) {
  const std::string source = write(tar_of(some_samples(1, 3)));
  const auto format = opened(source);
  std::filesystem::last_write_time(source, std::filesystem::last_write_time(source) + std::chrono::seconds(5));
  memory::Record record;
  const auto done = format->read(0, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kStorage);
  EXPECT_CONTAINS(done.error().what, "has changed");
}

TEST_P(TarFormatTest, AShardDeletedAfterItsFirstReadGoesOn) {
  const auto samples = some_samples(1, 3);
  const std::string source = write(tar_of(samples));
  const auto format = opened(source);
  memory::Record record;
  ASSERT_TRUE(format->read(0, record));
  std::filesystem::remove(source);
  EXPECT_TRUE(format->read(2, record));
}

// The pages of a hole must not be loaded, neither by reading nor through a mapping.
TEST_P(TarFormatTest, AHugeSparseMemberIsThatSamplesError) {
  constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40;
  TarWriter head, tail;
  head.add("a.jpg", "image").add("a.cls", "1").add("b.cls", "2").header("b.jpg", kTerabyte);
  tail.add("c.jpg", "image").add("c.cls", "3");
  const std::string start = head.finish(0), end = tail.finish();
  const std::string source = write(start);
  if (::truncate(source.c_str(), static_cast<off_t>(start.size() + kTerabyte)) != 0)
    GTEST_SKIP() << "no file of a terabyte here";
  std::ofstream(source, std::ios::binary | std::ios::app) << end;
  const auto format = opened(source);
  ASSERT_EQ(format->size(), 3u);
  memory::Record record;
  for (const std::uint64_t good : {0u, 2u}) EXPECT_TRUE(format->read(good, record));
  memory::Record fresh;
  const auto done = format->read(1, fresh);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_EQ(done.error().where.key, "b");
  EXPECT_EQ(done.error().where.shard, source);
  EXPECT_CONTAINS(done.error().what, std::to_string(memory::kLeastSampleBytes));
  EXPECT_EQ(fresh.storage.capacity(), 0u);
  EXPECT_FALSE(format->files(1));
  fresh.most_bytes = 512 + 512 + 1;  // sample 2 in one read: the image's block, a header, one byte
  EXPECT_TRUE(format->read(2, fresh));
  --fresh.most_bytes;
  EXPECT_FALSE(format->read(2, fresh));
}

TEST_P(TarFormatTest, AShardWrittenToWhileItIsOpenIsNoticedBetweenEpochs) {
  const auto samples = some_samples();
  const std::string archive = tar_of(samples), other = write(tar_of(some_samples(1, 3)), "other.tar");
  const auto format = opened(write(archive) + "::" + other);
  memory::Record record;
  ASSERT_TRUE(format->read(0, record));
  ASSERT_TRUE(format->read(samples.size(), record));
  format->notice_changes();
  ASSERT_TRUE(format->read(0, record)) << "nothing has changed";
  write(archive + std::string(512, '\0'));
  format->notice_changes();
  for (int again = 0; again < 2; ++again) {
    const auto done = format->read(1, record);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kStorage);
    EXPECT_CONTAINS(done.error().what, "has changed between index and read");
    EXPECT_EQ(done.error().where.key, samples[1].key);
    EXPECT_TRUE(format->read(samples.size(), record)) << "the other shard is as it was";
    format->notice_changes();
  }
}

TEST_P(TarFormatTest, ThousandsOfShardsStayWithinTheLimitOnOpenFiles) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "no /proc here";
  constexpr std::size_t kShards = OpenShards::kMost + 50;
  const auto samples = some_samples(1, kShards);
  for (std::size_t i = 0; i < kShards; ++i) write(tar_of({samples[i]}), "many-" + std::to_string(i) + ".tar");
  const auto format = opened(folder_.path("many-{0.." + std::to_string(kShards - 1) + "}.tar"));
  ASSERT_EQ(format->size(), kShards);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  memory::Record record;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (std::size_t i = 0; i < kShards; ++i) {
      ASSERT_TRUE(format->read(i, record)) << i;
      EXPECT_TRUE(std::ranges::equal(record.fields[0].bytes, std::as_bytes(std::span(samples[i].image)))) << i;
    }
  EXPECT_LE(open_files(), before + static_cast<std::ptrdiff_t>(OpenShards::kMost) + 1);
}

// Storage of local files that are read like remote files.
class HeldStorage final : public storage::Storage {
 public:
  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    ++opened;
    return local().open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return local().read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& folder) const override { return local().list(folder); }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return local().stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local().is_directory(path); }
  bool holds_versions() const override { return true; }

  mutable std::atomic<int> opened{0};

 private:
  static const storage::Storage& local() { return *storage::local_storage(); }
};

TEST(TarFormat, AShardAtHandIsStillHeldToWhatAManifestSays) {
  const storage::TemporaryFolder folder;
  const std::string archive = tar_of({{"a", "image", 1}});
  const std::string path = folder.write("x.tar", archive);
  const auto held = std::make_shared<HeldStorage>();
  OpenOptions options;
  options.storage = held;
  options.index_directory = folder.path("indexes");
  ASSERT_TRUE(open(path, options));  // stores an index
  EXPECT_GT(held->opened, 0);
  held->opened = 0;
  ASSERT_TRUE(open(path, options));
  EXPECT_EQ(held->opened, 0) << "no request is sent";
  for (const std::uint64_t bytes : {archive.size(), archive.size() + 512}) {
    options.storage = std::make_shared<storage::ManifestStorage>(
        held, std::vector<storage::ListedObject>{{path, bytes, storage::ObjectSum{}}});
    EXPECT_EQ(open(path, options).has_value(), bytes == archive.size());
  }
}

TEST_P(TarFormatTest, FindsItsShards) {
  write(tar_of(some_samples(1, 1)), "with{braces}.tar");
  write(tar_of(some_samples(1, 1)), "no_suffix");
  EXPECT_EQ(opened(folder_.path("with{braces}.tar"))->size(), 1u);
  EXPECT_EQ(opened(folder_.path("no_suffix"))->size(), 1u);
  const auto error_of = [this](const std::string& source) {
    const auto format = open(source, options());
    return format ? Error{} : format.error();
  };
  EXPECT_EQ(error_of(folder_.path("{0..3}.tar")).code, ErrorCode::kStorage);
  EXPECT_CONTAINS(error_of(folder_.path("{0..3}.tar")).message(), folder_.path("0.tar"));
  EXPECT_EQ(error_of(folder_.path("{0..3.tar")).code, ErrorCode::kConfig);
  EXPECT_EQ(error_of(folder_.path("no_suffix") + "::").code, ErrorCode::kConfig);
  EXPECT_EQ(error_of(folder_.path("no_suffix") + "::" + folder_.path()).code, ErrorCode::kConfig);
}

// Tests shards created by common programs, if these are installed.
TEST_P(TarFormatTest, ReadsWhatOtherWritersWrite) {
  const auto samples = some_samples(2, 3);
  const std::string long_folder(60, 'l');
  for (const StoredSample& sample : samples) {
    folder_.write("in/" + long_folder + "/" + long_folder + "/" + sample.key + ".jpg", sample.image);
    folder_.write("in/" + long_folder + "/" + long_folder + "/" + sample.key + ".cls", std::to_string(sample.label));
  }
  const std::string out = folder_.path("out.tar"), in = folder_.path("in");
  std::vector<std::string> commands;
  for (const char* dialect : {"oldgnu", "gnu", "ustar", "posix"})
    commands.push_back("tar --version >/dev/null 2>&1 || exit 99; tar --sort=name --format=" + std::string(dialect) +
                       " -cf " + out + " -C " + in + " .");
  commands.push_back("tar --version >/dev/null 2>&1 || exit 99; tar --sort=name --format=v7 -cf " + out + " -C " + in +
                     "/" + long_folder + "/" + long_folder + " .");
  for (const char* dialect : {"USTAR", "GNU", "PAX"})
    commands.push_back("python3 -c '' 2>/dev/null || exit 99; cd " + in +
                       " && python3 -c 'import sys, tarfile; t = "
                       "tarfile.open(sys.argv[1], \"w\", format=tarfile." +
                       dialect + "_FORMAT); t.add(\"" + long_folder + "\"); t.close()' " + out);
  int ran = 0;
  for (const std::string& command : commands) {
    std::filesystem::remove(out);
    const int status = std::system(command.c_str());
    if (WEXITSTATUS(status) == 99) continue;
    ASSERT_EQ(status, 0) << command;
    ++ran;
    const auto format = opened(out);
    ASSERT_TRUE(format) << command;
    ASSERT_EQ(format->size(), samples.size()) << command;
    memory::Record record;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ASSERT_TRUE(format->read(i, record));
      const std::string key = format->where(i).key;
      const auto sample =
          std::ranges::find_if(samples, [&key](const StoredSample& one) { return key.ends_with("/" + one.key); });
      ASSERT_NE(sample, samples.end()) << key;
      EXPECT_EQ(record.fields[1].value, sample->label);
      EXPECT_TRUE(std::ranges::equal(record.fields[0].bytes, std::as_bytes(std::span(sample->image))));
    }
  }
  if (ran == 0) GTEST_SKIP() << "neither a tar program nor python3 here";
}

}  // namespace
}  // namespace feedline::format
