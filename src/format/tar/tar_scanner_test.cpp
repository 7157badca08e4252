// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_scanner.h"

#include <gtest/gtest.h>

#include "format/index/memory_reader.h"
#include "format/tar/tar_writer.h"

namespace feedline::format {
namespace {

using Dialect = TarWriter::Dialect;

struct Scanned {
  std::vector<TarMember> members;
  Findings findings;
  std::string codes() const {
    std::string text;
    for (const Finding& finding : findings.examples()) text += (text.empty() ? "" : " ") + std::string(finding.code);
    return text;
  }
};

Scanned scan(const std::string& archive) {
  Scanned scanned;
  const MemoryReader reader(archive);
  TarScanner scanner(reader, archive.size(), "x.tar", scanned.findings);
  while (true) {
    const auto member = scanner.next();
    EXPECT_TRUE(member) << member.error().message();
    if (!member || !*member) return scanned;
    scanned.members.push_back(**member);
  }
}

TEST(TarScanner, ReadsEveryDialect) {
  for (const Dialect dialect : {Dialect::kV7, Dialect::kUstar, Dialect::kGnu, Dialect::kPax}) {
    const std::string content(1000, 'c');
    const std::string archive =
        TarWriter(dialect).add("folder/", "", '5').add("folder/a.jpg", content).add("b", "").add("c.cls", "7").finish();
    const Scanned scanned = scan(archive);
    EXPECT_EQ(scanned.codes(), "");
    ASSERT_EQ(scanned.members.size(), 4u);
    EXPECT_EQ(scanned.members[1].name, "folder/a.jpg");
    EXPECT_EQ(archive.substr(scanned.members[1].offset, scanned.members[1].bytes), content);
    EXPECT_EQ(archive.substr(scanned.members[3].offset, scanned.members[3].bytes), "7");
  }
}

TEST(TarScanner, ReadsLongNames) {
  std::string folders;
  for (int i = 0; i < 12; ++i) folders += "some_folder" + std::to_string(i) + "/";
  for (const Dialect dialect : {Dialect::kUstar, Dialect::kGnu, Dialect::kPax}) {
    for (const std::size_t length : {99ul, 100ul, 101ul, 160ul, 200ul}) {
      const std::string name = folders.substr(0, length - 10) + "000001.jpg";
      const Scanned scanned = scan(TarWriter(dialect).add(name, "x").add("next.jpg", "y").finish());
      ASSERT_EQ(scanned.members.size(), 2u) << scanned.codes();
      EXPECT_EQ(scanned.members[0].name, name);
      EXPECT_EQ(scanned.members[1].name, "next.jpg");
    }
  }
  const std::string huge = std::string(5000, 'n') + ".jpg";
  EXPECT_EQ(scan(TarWriter(Dialect::kGnu).add(huge, "x").finish()).members.at(0).name, huge);
  EXPECT_EQ(scan(TarWriter(Dialect::kPax).add(huge, "x").finish()).members.at(0).name, huge);
}

TEST(TarScanner, LongLinkTargetsAreNotNames) {
  const std::string target(300, 't');
  const Scanned scanned = scan(
      TarWriter(Dialect::kGnu).header("././@LongLink", 301, 'K').payload(target + '\0').add("link", "", '2').finish());
  ASSERT_EQ(scanned.members.size(), 1u);
  EXPECT_EQ(scanned.members[0].name, "link");
  EXPECT_FALSE(scanned.members[0].is_regular());
}

TEST(TarScanner, PaxOverridesNameAndSize) {
  const std::string records = TarWriter::pax_record("mtime", "1.5") + TarWriter::pax_record("path", "real/name.jpg") +
                              TarWriter::pax_record("size", "5");
  const Scanned scanned =
      scan(TarWriter(Dialect::kPax).pax(records).header("short", 0).payload("12345").add("b.jpg", "").finish());
  ASSERT_EQ(scanned.members.size(), 2u) << scanned.codes();
  EXPECT_EQ(scanned.members[0].name, "real/name.jpg");
  EXPECT_EQ(scanned.members[0].bytes, 5u);
  EXPECT_EQ(scanned.members[1].name, "b.jpg");
}

TEST(TarScanner, GlobalPaxHeadersReachAllThatFollow) {
  const Scanned comment = scan(
      TarWriter(Dialect::kPax).pax(TarWriter::pax_record("comment", "of git archive"), 'g').add("a.jpg", "x").finish());
  EXPECT_EQ(comment.members.at(0).name, "a.jpg");
  const Scanned sized = scan(TarWriter(Dialect::kPax)
                                 .pax(TarWriter::pax_record("size", "3"), 'g')
                                 .header("a.jpg", 0)
                                 .payload("123")
                                 .header("b.jpg", 0)
                                 .payload("456")
                                 .finish());
  ASSERT_EQ(sized.members.size(), 2u) << sized.codes();
  EXPECT_EQ(sized.members[1].bytes, 3u);
}

TEST(TarScanner, ReadsBinarySizes) {
  TarWriter writer(Dialect::kGnu);
  writer.header("large.jpg", std::uint64_t{9} << 30);
  const Scanned scanned = scan(writer.finish());  // the payload is missing, but the size was decoded
  EXPECT_EQ(scanned.codes(), "truncated_member");
  std::string archive = TarWriter(Dialect::kGnu).add("a.jpg", "12345").finish();
  archive.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  TarWriter::write_sum(archive);
  EXPECT_EQ(scan(archive).members.at(0).bytes, 5u);
}

TEST(TarScanner, TakesBothKindsOfChecksum) {
  const auto archive = [](TarWriter::Sum sum) {
    return TarWriter().header("gr\xc3\xbc\xc3\x9f.jpg", 1, '0', sum).payload("x").finish();
  };
  EXPECT_EQ(scan(archive(TarWriter::Sum::kUnsigned)).members.size(), 1u);
  EXPECT_EQ(scan(archive(TarWriter::Sum::kSigned)).members.size(), 1u);
  EXPECT_EQ(scan(archive(TarWriter::Sum::kWrong)).codes(), "not_tar");
}

TEST(TarScanner, OldGnuTimesAreNoPrefix) {
  std::string archive = TarWriter(Dialect::kGnu).add("a.jpg", "x").finish();
  archive.replace(345, 11, "14000000000");  // the position of the access time in old GNU headers
  TarWriter::write_sum(archive);
  EXPECT_EQ(scan(archive).members.at(0).name, "a.jpg");
}

TEST(TarScanner, MarksSparseMembers) {
  EXPECT_TRUE(scan(TarWriter(Dialect::kGnu).add("a.jpg", "x", 'S').finish()).members.at(0).sparse);
  const std::string records = TarWriter::pax_record("GNU.sparse.major", "1") +
                              TarWriter::pax_record("GNU.sparse.minor", "0") +
                              TarWriter::pax_record("GNU.sparse.name", "real.jpg");
  const Scanned scanned =
      scan(TarWriter(Dialect::kPax).pax(records).add("GNUSparseFile.1/real.jpg", "x").add("b.jpg", "y").finish());
  ASSERT_EQ(scanned.members.size(), 2u);
  EXPECT_TRUE(scanned.members[0].sparse);
  EXPECT_EQ(scanned.members[0].name, "real.jpg");
  EXPECT_FALSE(scanned.members[1].sparse);
}

TEST(TarScanner, SkipsContinuedSparseMaps) {
  std::string archive = TarWriter(Dialect::kGnu).header("a.jpg", 3, 'S').finish(0);
  archive[482] = 1;
  TarWriter::write_sum(archive);
  std::string map(1024, 'm');
  map[504] = 1;  // the first block: another one follows
  map[512 + 504] = 0;
  const Scanned scanned = scan(archive + map + TarWriter(Dialect::kGnu).payload("abc").add("b.jpg", "y").finish());
  ASSERT_EQ(scanned.members.size(), 2u) << scanned.codes();
  EXPECT_EQ(scanned.members[0].offset, 512u + 1024u);
  EXPECT_EQ(scanned.members[1].name, "b.jpg");
}

TEST(TarScanner, LinksHaveNoPayloadWhateverTheySay) {
  const Scanned scanned =
      scan(TarWriter().header("hard", 5000, '1').header("soft", 5000, '2').add("a.jpg", "x").finish());
  EXPECT_EQ(scanned.codes(), "");
  EXPECT_EQ(scanned.members.size(), 3u);
}

TEST(TarScanner, SaysWhatIsWrong) {
  const TarWriter good = TarWriter().add("a.jpg", "x");
  const auto after_good = [](const TarWriter& writer) {
    return TarWriter().add("a.jpg", "x").raw(writer.finish()).finish(0);
  };
  EXPECT_EQ(scan("").codes(), "empty_file");
  EXPECT_EQ(scan("short").codes(), "truncated_header");
  EXPECT_EQ(scan(std::string(5000, 'x')).codes(), "not_tar");
  EXPECT_EQ(scan(good.finish(0)).codes(), "no_end_of_archive");
  EXPECT_EQ(scan(good.finish(1)).codes(), "no_end_of_archive");
  EXPECT_EQ(scan(good.finish(2)).codes(), "");
  EXPECT_EQ(scan(good.finish(20)).codes(), "");
  EXPECT_EQ(scan(good.finish(1) + good.finish()).codes(), "no_end_of_archive");  // a lone zero block
  EXPECT_EQ(scan(good.finish() + good.finish()).codes(), "data_after_end");      // cat a.tar b.tar
  EXPECT_EQ(scan(good.finish() + good.finish()).findings.first_error()->offset, 2048u);
  EXPECT_EQ(scan(good.finish() + std::string(600, 'x')).findings.first_error(), nullptr);
  EXPECT_EQ(scan(good.finish(5000)).codes(), "zero_filled_tail");
  EXPECT_EQ(scan(good.finish(0) + std::string(512, 'x') + good.finish()).codes(), "bad_checksum");
  EXPECT_EQ(scan(after_good(TarWriter().pax("99 path=x\n"))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().pax("0 path=x\n"))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().pax("8 pathx\n"))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().pax(TarWriter::pax_record("size", "-1")))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().pax(TarWriter::pax_record("size", "x")))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().pax(TarWriter::pax_record("path", "x")))).codes(), "no_end_of_archive");
  EXPECT_EQ(scan(after_good(TarWriter().header("L", std::uint64_t{1} << 40, 'L'))).codes(), "bad_header");
  EXPECT_EQ(scan(after_good(TarWriter().header("L", 100'000, 'L'))).codes(), "truncated_member");
  EXPECT_EQ(scan(after_good(TarWriter().header("b.jpg", 100'000))).codes(), "truncated_member");
}

}  // namespace
}  // namespace feedline::format
