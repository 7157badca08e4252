// SPDX-License-Identifier: Apache-2.0
#include "format/tar/field_choice.h"

#include <gtest/gtest.h>

namespace feedline::format {
namespace {

std::optional<std::int64_t> parsed(std::string_view text) { return parse_integer(std::as_bytes(std::span(text))); }

TEST(FieldChoice, ReadsIntegersAsPythonDoes) {
  EXPECT_EQ(parsed("7"), 7);
  EXPECT_EQ(parsed(" \t\r\n 007\n"), 7);
  EXPECT_EQ(parsed("-12"), -12);
  EXPECT_EQ(parsed("+12"), 12);
  EXPECT_EQ(parsed("9223372036854775807"), 9223372036854775807);
  for (const char* text : {"", " ", "1.0", "0x10", "1 2", "+-1", "--1", "cat", "9223372036854775808", "1e3", "- 1"})
    EXPECT_FALSE(parsed(text)) << text;
  EXPECT_FALSE(parsed(std::string_view("1\0", 2)));
}

TEST(FieldChoice, NamesAFieldAfterItsFirstAlternative) {
  const auto fields = parse_fields({"JPG;png", "seg.png", "cls;id"});
  ASSERT_TRUE(fields) << fields.error().message();
  ASSERT_EQ(fields->size(), 3u);
  EXPECT_EQ((*fields)[0].description.name, "jpg");
  EXPECT_EQ((*fields)[0].alternatives, (std::vector<std::string>{"jpg", "png"}));
  EXPECT_EQ((*fields)[0].description.kind, FieldKind::kImage);
  EXPECT_EQ((*fields)[1].description.kind, FieldKind::kMask);
  EXPECT_EQ((*fields)[2].description.name, "cls");
  EXPECT_EQ((*fields)[2].description.kind, FieldKind::kInteger);
}

TEST(FieldChoice, TellsKindsByExtensionOrByWhatIsSaid) {
  const auto kind_of = [](const char* spec) {
    const auto fields = parse_fields({spec});
    EXPECT_TRUE(fields) << fields.error().message();
    return fields ? std::string(name_of((*fields)[0].description.kind)) : "";
  };
  EXPECT_EQ(kind_of("left.jpg"), "image");
  EXPECT_EQ(kind_of("mask.png"), "mask");
  EXPECT_EQ(kind_of("segmentation.PNG"), "mask");
  EXPECT_EQ(kind_of("left.png:mask"), "mask");
  EXPECT_EQ(kind_of("mask.png:image"), "image");
  EXPECT_EQ(kind_of("boxes.npy"), "array");
  EXPECT_EQ(kind_of("json"), "json");
  EXPECT_EQ(kind_of("txt;caption"), "text");
  EXPECT_EQ(kind_of("cls:text"), "text");
  EXPECT_EQ(kind_of("flac"), "audio");
  EXPECT_EQ(kind_of("mp4"), "video");
  EXPECT_EQ(kind_of("bin"), "bytes");
  EXPECT_EQ(kind_of("seg.txt"), "text");
  EXPECT_EQ((*parse_fields({"flac:text"}))[0].description.name, "flac");
}

TEST(FieldChoice, RefusesWhatItCannotGive) {
  for (const char* spec : {"jpg;cls", "", "jpg;", ";jpg", "jpg:picture", ":image", "png;mask.png"}) {
    const auto fields = parse_fields({spec});
    ASSERT_FALSE(fields) << spec;
    EXPECT_EQ(fields.error().code, ErrorCode::kConfig);
  }
  EXPECT_NE(parse_fields({"jpg;cls"}).error().what.find("jpg is image and cls is value"), std::string::npos);
  EXPECT_FALSE(parse_fields({"jpg", "jpg;png"}));
}

TEST(FieldChoice, FindsThePreferredAlternative) {
  ShardIndexBuilder builder;
  builder.add_sample("both");
  builder.add_member("png", 0, 1);
  builder.add_member("json", 1, 1);
  builder.add_member("jpg", 2, 1);
  builder.add_sample("one");
  builder.add_member("png", 3, 1);
  builder.add_sample("none");
  builder.add_member("json", 4, 1);
  const ShardIndex index = builder.build({100, 1});
  const auto fields = parse_fields({"jpg;png", "png", "cls"});
  const FieldFinder finder(index, *fields);
  EXPECT_EQ(finder.find(0, 0)->offset, 2u);
  EXPECT_EQ(finder.find(0, 1)->offset, 0u);
  EXPECT_EQ(finder.find(1, 0)->offset, 3u);
  EXPECT_FALSE(finder.find(1, 2));
  EXPECT_FALSE(finder.find(2, 0));
}

}  // namespace
}  // namespace feedline::format
