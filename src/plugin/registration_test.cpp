// SPDX-License-Identifier: Apache-2.0
// What plugins may register, and what is refused.
#include "plugin/registration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "plugin/plugin_fixture.h"
#include "storage/foreign/foreign_storage.h"
#include "transform/plugin/plugin_operations.h"

namespace feedline::plugin {
namespace {

TEST(Registration, ReturnsTheNamesInOrder) {
  const Offered parts{.storages = {storage_part("names")},
                      .formats = {format_part("names_2"), format_part("names_1")},
                      .codecs = {codec_part("names-a", "NAMESA"), codec_part("names-b", "NAMESB")},
                      .operations = {operation_part("names.Op")}};
  const auto contents = registered(parts);
  ASSERT_TRUE(contents) << contents.error().what;
  EXPECT_EQ(contents->storages, std::vector<std::string>{"names"});
  EXPECT_EQ(contents->formats, (std::vector<std::string>{"names_2", "names_1"}));
  EXPECT_EQ(contents->codecs, (std::vector<std::string>{"names-a", "names-b"}));
  EXPECT_EQ(contents->operations, std::vector<std::string>{"names.Op"});
  EXPECT_NE(refusal({.storages = parts.storages}).find("'names://' exists already"), std::string::npos);
  EXPECT_NE(refusal({.formats = parts.formats}).find("'names_2' exists already"), std::string::npos);
  EXPECT_NE(refusal({.codecs = parts.codecs}).find("'names-a' exists already"), std::string::npos);
  EXPECT_NE(refusal({.operations = parts.operations}).find("'names.Op' exists already"), std::string::npos);
}

TEST(Registration, AddsNothingIfAnyPartIsRefused) {
  Offered parts{.storages = {storage_part("nothing")}, .operations = {operation_part("nothing")}};
  parts.operations[0].run = nullptr;
  EXPECT_EQ(refusal(parts), "the operation 'nothing' has no run()");
  EXPECT_FALSE(storage::has_foreign_storage("nothing"));
  parts.operations[0] = operation_part("nothing");
  parts.code = FEEDLINE_FAILED;
  EXPECT_NE(refusal(parts).find("failed with code 4 and no message"), std::string::npos);
  parts.code = 77;
  EXPECT_NE(refusal(parts).find("undefined code 77"), std::string::npos);
  parts.throws = true;
  EXPECT_NE(refusal(parts).find("the plugin threw an exception"), std::string::npos);
  EXPECT_EQ(transform::plugin_operation("nothing"), nullptr);
  parts.throws = false;
  parts.code = FEEDLINE_OK;
  EXPECT_EQ(refusal(parts), "");
}

TEST(Registration, RefusesStructsOfOtherSizes) {
  const auto refuses = [](Offered parts) {
    const std::string text = refusal(parts);
    EXPECT_NE(text.find("but version 1 of the interface has"), std::string::npos) << text;
  };
  for (const int difference : {-8, 8}) {
    Offered parts{.storages = {storage_part("sizes")},
                  .formats = {format_part("sizes")},
                  .codecs = {codec_part("sizes", "SIZES")},
                  .operations = {operation_part("sizes")}};
    parts.storages[0].size += difference;
    parts.formats[0].size += difference;
    parts.codecs[0].size += difference;
    parts.operations[0].size += difference;
    refuses({.storages = parts.storages});
    refuses({.formats = parts.formats});
    refuses({.codecs = parts.codecs});
    refuses({.operations = parts.operations});
  }
}

TEST(Registration, RefusesNamesThatAPluginRegistersTwiceOrThatAreReserved) {
  EXPECT_EQ(refusal({.storages = {storage_part("twice"), storage_part("twice")}}),
            "it registers a storage twice: 'twice'");
  EXPECT_EQ(refusal({.codecs = {codec_part("twice", "TWICEA"), codec_part("twice", "TWICEB")}}),
            "it registers a codec twice: 'twice'");
  EXPECT_NE(refusal({.codecs = {codec_part("twice1", "TWICE"), codec_part("twice2", "TWICE2")}})
                .find("the codec 'twice2' has the magic bytes of the codec 'twice1'"),
            std::string::npos);
  const ReservedNames reserved{.formats = {"mine"}, .operations = {"mine"}};
  EXPECT_NE(refusal({.formats = {format_part("mine")}}, reserved).find("it registers a format 'mine', which a Python"),
            std::string::npos);
  EXPECT_NE(refusal({.operations = {operation_part("mine")}}, reserved).find("it registers an operation 'mine'"),
            std::string::npos);
}

TEST(Registration, LimitsTheCodecs) {
  std::vector<std::string> names;
  for (char c = 'A'; c <= 'Z'; ++c)
    for (const char* const digit : {"1", "2", "3"}) names.push_back(std::string(1, c) + "%" + digit);
  Offered parts;
  std::vector<std::string> lower = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lower[i] = "many" + std::to_string(i);
    parts.codecs.push_back(codec_part(lower[i].c_str(), names[i].c_str()));
  }
  EXPECT_NE(refusal(parts).find("is one too many: the limit is 64 codecs of plugins"), std::string::npos);
}

struct Change {
  std::function<void(Offered&)> change;
  std::string error;
  friend void PrintTo(const Change& change, std::ostream* out) { *out << change.error; }
};

class RefusedParts : public testing::TestWithParam<Change> {};

TEST_P(RefusedParts, HaveAClearError) {
  Offered parts{.storages = {storage_part("changed")},
                .formats = {format_part("changed")},
                .codecs = {codec_part("changed", "CHANGED")},
                .operations = {operation_part("changed")}};
  GetParam().change(parts);
  const std::string text = refusal(parts);
  EXPECT_NE(text.find(GetParam().error), std::string::npos) << text;
  EXPECT_FALSE(storage::has_foreign_storage("changed"));
}

const char* const kTar[] = {"tar"};
const char* const kWithDot[] = {".x"};
const char* const kUpper[] = {"Jpg"};
const char* const kNull[] = {nullptr};
const char* const kPng[] = {"png"};
const char* const kParts[] = {"part"};
const feedline_field kTwoFields[] = {{"a", "bytes"}, {"a", "text"}};
const feedline_field kBadKind[] = {{"a", "video"}};
const feedline_field kNoKind[] = {{"a", nullptr}};
const feedline_field kBadField[] = {{"a=b", "bytes"}};
const feedline_argument kFields[] = {{"fields", 0}};
const feedline_argument kTwoArguments[] = {{"a", 0}, {"a", 1}};
const std::string kLongName(1000, 'x');

INSTANTIATE_TEST_SUITE_P(
    All, RefusedParts,
    testing::Values(
        Change{[](auto& p) { p.storages[0].scheme = nullptr; }, "a storage has no scheme"},
        Change{[](auto& p) { p.storages[0].scheme = "S3"; }, "a storage has the scheme 'S3'"},
        Change{[](auto& p) { p.storages[0].scheme = "1a"; }, "begin with a letter"},
        Change{[](auto& p) { p.storages[0].scheme = "s3"; }, "the storage scheme 's3://' exists already"},
        Change{[](auto& p) { p.storages[0].read = nullptr; }, "lacks one of stat() and read()"},
        Change{[](auto& p) { p.formats[0].name = ""; }, "a format has no name"},
        Change{[](auto& p) { p.formats[0].name = "tar"; }, "the format 'tar' exists already"},
        Change{[](auto& p) { p.formats[0].name = "a b"; }, "a format has the name 'a b'; use at most 64 letters"},
        Change{[](auto& p) { p.formats[0].name = "\xC3\xA9\n"; }, "a format has the name '???'"},
        Change{[](auto& p) { p.formats[0].name = kLongName.c_str(); }, "use at most 64 letters"},
        Change{[](auto& p) { p.formats[0].locate = nullptr; }, "lacks one of open(), close(), locate() and read()"},
        Change{[](auto& p) { p.formats[0].fields = nullptr; }, "has 2 fields, but the list of them is NULL"},
        Change{[](auto& p) { p.formats[0].field_count = 0; }, "has no fields"},
        Change{[](auto& p) { p.formats[0].field_count = ~std::size_t{0}; }, "fields; the limit is 1000"},
        Change{[](auto& p) { p.formats[0].fields = kTwoFields; }, "has two fields 'a'"},
        Change{[](auto& p) { p.formats[0].fields = kBadKind, p.formats[0].field_count = 1; }, "of the kind 'video'"},
        Change{[](auto& p) { p.formats[0].fields = kNoKind, p.formats[0].field_count = 1; }, "of the kind ''"},
        Change{[](auto& p) { p.formats[0].fields = kBadField, p.formats[0].field_count = 1; }, "field name 'a=b'"},
        Change{[](auto& p) { p.formats[0].extension_count = 1; }, "has 1 extensions, but the list of them is NULL"},
        Change{[](auto& p) { p.formats[0].extensions = kNull, p.formats[0].extension_count = 1; }, "no extension"},
        Change{[](auto& p) { p.formats[0].extensions = kWithDot, p.formats[0].extension_count = 1; }, "omit the dot"},
        Change{[](auto& p) { p.formats[0].extensions = kTar, p.formats[0].extension_count = 1; },
               "has the extension 'tar', which Feedline reads"},
        Change{[](auto& p) { p.formats[0].extensions = kPng, p.formats[0].extension_count = 1; },
               "has the extension 'png', which Feedline reads"},
        Change{[](auto& p) {
                 p.formats[0].extensions = kParts, p.formats[0].extension_count = 1;
                 p.formats.push_back(p.formats[0]);
                 p.formats[1].name = "changed2";
               },
               "the format 'changed2' has the extension 'part' of the format 'changed'"},
        Change{[](auto& p) { p.codecs[0].name = "Qoi"; }, "use at most 64 lower-case letters"},
        Change{[](auto& p) { p.codecs[0].name = "png"; }, "the codec 'png' exists already"},
        Change{[](auto& p) { p.codecs[0].decode = nullptr; }, "lacks one of read_header() and decode()"},
        Change{[](auto& p) {
                 p.codecs[0].magic = {nullptr, 4};
               },
               "has 4 magic bytes; between 2 and 12"},
        Change{[](auto& p) { p.codecs[0].magic.size = 1; }, "has 1 magic bytes"},
        Change{[](auto& p) {
                 p.codecs[0].magic = {"\x89PN", 3};
               },
               "has the magic bytes of the codec 'png'"},
        Change{[](auto& p) { p.codecs[0].extensions = kPng, p.codecs[0].extension_count = 1; },
               "has the extension 'png' of the codec 'png'"},
        Change{[](auto& p) { p.codecs[0].extensions = kUpper, p.codecs[0].extension_count = 1; }, "extension 'Jpg'"},
        Change{[](auto& p) { p.codecs[0].extension_count = 7; }, "has 7 extensions; the limit is 6"},
        Change{[](auto& p) { p.operations[0].name = nullptr; }, "an operation has no name"},
        Change{[](auto& p) { p.operations[0].flags = 4; }, "flags that version 1 does not define: 4"},
        Change{[](auto& p) { p.operations[0].argument_count = 1; }, "has 1 arguments, but the list of them is NULL"},
        Change{[](auto& p) { p.operations[0].arguments = kFields, p.operations[0].argument_count = 1; },
               "which is an argument of Dataset.apply()"},
        Change{[](auto& p) { p.operations[0].arguments = kTwoArguments, p.operations[0].argument_count = 2; },
               "has two arguments 'a'"}));

TEST(Registration, RefusesNullInsteadOfAPart) {
  const auto call = [](const feedline_registry_v1* registry, feedline_message* message) {
    return registry->add_codec(registry->host, nullptr, message);
  };
  const auto contents = register_plugin("test", call, {});
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().what, "a codec is NULL");
  EXPECT_EQ(contents.error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace feedline::plugin
