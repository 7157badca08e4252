// SPDX-License-Identifier: Apache-2.0
#include "format/shards/member_files.h"

#include <gtest/gtest.h>

#include "format/shards/record_keys.h"
#include "format/wanted_field.h"

namespace feedline::format {
namespace {

TEST(MemberFiles, NoTwoAreCalledAlike) {
  MemberFiles files;
  files.add("image.jpg", "jpg", {std::byte{1}});
  files.add("other.jpg", "jpg", {std::byte{2}});
  files.add("other.jpg", "jpg", {std::byte{3}});
  files.add("n.cls", "", {});
  std::string names;
  const auto made = files.take();
  for (const auto& file : made) names += file.extension + " ";
  EXPECT_EQ(names, "jpg other.jpg _other.jpg n.cls ");
  EXPECT_EQ(made[2].bytes.front(), std::byte{3});
  EXPECT_EQ(plain_name("A b/C.d-1\xC3\xA4"), "a_b_c_d-1__");
  EXPECT_EQ(plain_name(""), "_");
}

TEST(RecordKeys, AreTheShardsNamesAndNumbersThatSort) {
  EXPECT_EQ(key_stems({"a.b", "c", "a_b"}), (std::vector<std::string>{"a_b-0", "c", "a_b-2"}));
  EXPECT_EQ(record_key("s", 17), "s/00000017");
  EXPECT_EQ(record_key("s", 1234567890), "s/1234567890");
}

TEST(WantedField, HasANameAlternativesAndAKind) {
  const auto spec = parse_wanted_field("caption=text;title:text", "column");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->name, "caption");
  EXPECT_EQ(spec->alternatives, (std::vector<std::string>{"text", "title"}));
  EXPECT_EQ(spec->said, FieldKind::kText);
  EXPECT_EQ(spec->names(), "text, title");
  EXPECT_EQ(parse_wanted_field("a;b", "column")->name, "a");
  EXPECT_FALSE(parse_wanted_field("a", "column")->said);
  for (const char* wrong : {"=a", "a;", ";a", "", "x=", "a:nothing"}) {
    const auto refused = parse_wanted_field(wrong, "feature");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  }
  EXPECT_NE(parse_wanted_field("a;", "feature").error().what.find("feature name"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
