// SPDX-License-Identifier: Apache-2.0
// Functions of plugins that fail, throw or return wrong results while data is read.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "decode/decoder.h"
#include "feedline/operation_types.h"
#include "format/format.h"
#include "format/plugin/plugin_formats.h"
#include "plugin/plugin_fixture.h"
#include "storage/registry.h"
#include "storage/temporary_folder.h"
#include "transform/chain.h"

namespace feedline::plugin {
namespace {

// ---- codecs ----

struct Codec {
  int width = 2, height = 2;
  int header_code = FEEDLINE_OK, decode_code = FEEDLINE_OK;
  const char* message = "";
  bool throws = false;
};
Codec codec;

class FaultyCodec : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    feedline_codec_v1 part = codec_part("faulty", "FAULTY");
    part.read_header = [](void*, feedline_bytes, int* width, int* height, feedline_message* message) {
      *width = codec.width, *height = codec.height;
      return codec.header_code == FEEDLINE_OK ? int{FEEDLINE_OK} : failed(message, codec.header_code, codec.message);
    };
    part.decode = [](void*, feedline_bytes, std::uint8_t* out, std::size_t stride, feedline_message* message) {
      if (codec.throws) throw std::bad_alloc();
      if (codec.decode_code != FEEDLINE_OK) return failed(message, codec.decode_code, codec.message);
      for (int y = 0; y < codec.height; ++y) std::memset(out + y * stride, 9, 3 * codec.width);
      return int{FEEDLINE_OK};
    };
    ASSERT_EQ(refusal({.codecs = {part}}), "");
  }
  void SetUp() override { codec = {}; }
  static Result<void> decode(Box region = {0, 0, 2, 2}, ColorMode mode = ColorMode::kRgb) {
    const std::string file = "FAULTY image";
    decode::ImageDecoder decoder;
    FEEDLINE_TRY(const auto header, decoder.open(std::as_bytes(std::span(file))));
    EXPECT_EQ(header.width, codec.width);
    memory::PixelBuffer out;
    FEEDLINE_CHECK_OK(decoder.decode(region, mode, out));
    EXPECT_EQ(out.row(region.height - 1)[0], 9);
    return {};
  }
};

TEST_F(FaultyCodec, DecodesRegionsOfBothModes) {
  EXPECT_TRUE(decode());
  EXPECT_TRUE(decode({1, 1, 1, 1}));
  EXPECT_TRUE(decode({0, 0, 2, 2}, ColorMode::kL));
  EXPECT_TRUE(decode({0, 1, 2, 1}, ColorMode::kL));
}

TEST_F(FaultyCodec, CannotReportAnImpossibleSize) {
  for (const auto& [width, height] : {std::pair{0, 2}, {2, -1}, {std::numeric_limits<int>::max(), 2'000'000}}) {
    codec.width = width, codec.height = height;
    const auto decoded = decode();
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, ErrorCode::kData) << decoded.error().what;
  }
}

TEST_F(FaultyCodec, FailsWithTheCodeAndTheMessage) {
  codec.header_code = FEEDLINE_BAD_DATA, codec.message = "no header";
  EXPECT_EQ(decode().error().what, "faulty image: the plugin's codec 'faulty': no header");
  codec.header_code = FEEDLINE_OK, codec.decode_code = FEEDLINE_BAD_DATA, codec.message = "truncated";
  auto error = decode().error();
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.where.stage, "decode");
  codec.decode_code = -3, codec.message = "";
  EXPECT_NE(decode().error().what.find("undefined code -3"), std::string::npos);
  codec.decode_code = FEEDLINE_BAD_DATA;
  const std::string endless(5000, 'x');  // fills the message without a zero byte
  codec.message = endless.c_str();
  EXPECT_LT(decode().error().what.size(), 1200U);
  codec.decode_code = FEEDLINE_OK, codec.throws = true;
  error = decode().error();
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_NE(error.what.find("the plugin threw an exception"), std::string::npos);
}

// ---- formats ----

struct Values {
  std::uint64_t samples = 10, offset = 0, bytes = 1;
  int open_code = FEEDLINE_OK, read_code = FEEDLINE_OK;
  int opened = 0;
  bool throws = false;
  // sets the values of "data" and "label"
  void (*fill)(feedline_bytes stored, const feedline_memory* memory, feedline_bytes* values) = nullptr;
};
Values values;
std::int64_t label = 5;

class FaultyFormat : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    feedline_format_v1 part = format_part("faulty");
    part.open = [](void*, const feedline_file* file, void** shard, std::uint64_t* samples, feedline_message* message) {
      *shard = &values;
      *samples = values.samples;
      if (values.open_code != FEEDLINE_OK) return failed(message, values.open_code, "no index");
      std::array<char, 4> head{};
      std::size_t got = 0;
      const int code = file->read(file->host, 8, head.data(), head.size(), &got, message);
      EXPECT_EQ(got, 2U);  // the end of the file
      EXPECT_EQ(head[1], '9');
      ++values.opened;
      return code;
    };
    part.close = [](void*, void* shard) {
      EXPECT_EQ(shard, &values);
      --values.opened;
      throw 1;
    };
    part.locate = [](void*, void*, std::uint64_t, std::uint64_t* offset, std::uint64_t* bytes, feedline_message*) {
      *offset = values.offset, *bytes = values.bytes;
      return int{FEEDLINE_OK};
    };
    part.read = [](void*, void*, std::uint64_t, feedline_bytes stored, const feedline_memory* memory,
                   feedline_bytes* out, feedline_message* message) {
      if (values.throws) throw 1;
      if (values.read_code != FEEDLINE_OK) return failed(message, values.read_code, "no sample");
      out[0] = stored, out[1] = {&label, 8};
      if (values.fill != nullptr) values.fill(stored, memory, out);
      return int{FEEDLINE_OK};
    };
    ASSERT_EQ(refusal({.formats = {part}}), "");
  }
  void SetUp() override { values = {}; }
  void TearDown() override { EXPECT_EQ(values.opened, 0); }

  storage::TemporaryFolder folder_;
  std::string path_ = folder_.write("some.faulty", "0123456789");
  format::OpenOptions options_{.format = "faulty"};

  Result<memory::Record> read() {
    FEEDLINE_TRY(const auto format, format::open(path_, options_));
    memory::Record record;
    FEEDLINE_CHECK_OK(dynamic_cast<const format::RecordFormat&>(*format).read(0, record));
    text_.assign(reinterpret_cast<const char*>(record.fields[0].bytes.data()), record.fields[0].bytes.size());
    return record;
  }
  std::string read_error() {
    const auto record = read();
    EXPECT_FALSE(record);
    return record ? "" : record.error().what;
  }
  std::string text_;
};

TEST_F(FaultyFormat, ReadsPartsOfTheFileAndOfMemory) {
  values.offset = 3, values.bytes = 4;
  auto record = read();
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(text_, "3456");
  EXPECT_EQ(record->fields[1].value, 5);
  values.fill = [](feedline_bytes, const feedline_memory* memory, feedline_bytes* out) {
    void* const data = memory->allocate(memory->host, 3);
    std::memcpy(data, "new", 3);
    out[0] = {data, 3};
    EXPECT_EQ(memory->allocate(memory->host, std::size_t{1} << 60U), nullptr);
  };
  ASSERT_TRUE(read());
  EXPECT_EQ(text_, "new");
}

TEST_F(FaultyFormat, HasSamplesWithoutBytes) {
  values.bytes = 0;
  ASSERT_TRUE(read());
  EXPECT_EQ(text_, "");
  values.fill = [](feedline_bytes, const feedline_memory*, feedline_bytes* out) { out[0] = {nullptr, 0}; };
  EXPECT_NE(read_error().find("the sample has no field 'data'"), std::string::npos);
  options_.missing = Missing::kNone;
  const auto record = read();
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->fields[0].absent);
}

TEST_F(FaultyFormat, CannotReturnBytesFromElsewhere) {
  values.bytes = 4;
  using Fill = void (*)(feedline_bytes, const feedline_memory*, feedline_bytes*);
  for (const Fill fill : {Fill([](feedline_bytes stored, const feedline_memory*, feedline_bytes*out) {
                            out[0] = {stored.data, 5};
                          }),
                          Fill([](feedline_bytes stored, const feedline_memory*, feedline_bytes*out) {
                            out[0] = {stored.data, ~std::size_t{0}};
                          }),
                          Fill([](feedline_bytes, const feedline_memory*, feedline_bytes*out) {
                            out[0] = {"text", 4};
                          })}) {
    values.fill = fill;
    EXPECT_NE(read_error().find("are neither a part of the stored bytes nor of allocated memory"), std::string::npos);
  }
  values.fill = [](feedline_bytes, const feedline_memory*, feedline_bytes* out) { out[1].size = 4; };
  EXPECT_NE(read_error().find("the field 'label' has 4 bytes, but a value has 8"), std::string::npos);
}

TEST_F(FaultyFormat, CannotLocateSamplesOutsideTheFile) {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [offset, bytes] : {Range{0, 11}, {10, 1}, {11, 0}, {1, ~std::uint64_t{0}}, {~std::uint64_t{0}, 1}}) {
    values.offset = offset, values.bytes = bytes;
    EXPECT_NE(read_error().find("it is truncated or damaged"), std::string::npos) << offset << " " << bytes;
  }
}

TEST_F(FaultyFormat, CannotHaveAnyNumberOfSamples) {
  values.samples = ~std::uint64_t{0};
  EXPECT_NE(read_error().find("open() reports 18446744073709551615 samples; the limit is"), std::string::npos);
  values.samples = 0;
  EXPECT_NE(read_error().find("the files have no samples"), std::string::npos);
}

TEST_F(FaultyFormat, FailsWithTheCodeOfTheFunction) {
  values.open_code = FEEDLINE_BAD_DATA;
  auto record = read();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::kData);
  EXPECT_EQ(record.error().where.shard, path_);
  EXPECT_NE(record.error().what.find("the plugin's format 'faulty': no index"), std::string::npos);
  values.open_code = FEEDLINE_OK;
  for (const auto& [code, kind] :
       {std::pair{FEEDLINE_BAD_DATA, ErrorCode::kData}, std::pair{FEEDLINE_FAILED, ErrorCode::kStorage},
        std::pair{FEEDLINE_BAD_ARGUMENT, ErrorCode::kConfig}}) {
    values.read_code = code;
    record = read();
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code, kind);
  }
  values.read_code = FEEDLINE_OK, values.throws = true;
  EXPECT_NE(read_error().find("the plugin threw an exception"), std::string::npos);
}

TEST_F(FaultyFormat, HasAFingerprintOfTheLocatedSamples) {
  const auto fingerprint = [&] { return (*format::open(path_, options_))->fingerprint(); };
  const auto before = fingerprint();
  EXPECT_EQ(fingerprint(), before);
  values.bytes = 2;
  EXPECT_NE(fingerprint(), before);
}

// ---- storages ----

struct Shelf {
  feedline_object object{10, 1, 0};
  std::size_t got = 10;
  void (*list)(const feedline_listing& listing) = nullptr;
};
Shelf shelf;

class FaultyStorage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    feedline_storage_v1 part = storage_part("faulty");
    part.stat = [](void*, const char*, feedline_object* object, feedline_message*) {
      *object = shelf.object;
      return int{FEEDLINE_OK};
    };
    part.read = [](void*, const char*, std::uint64_t, void* out, std::size_t bytes, std::size_t* got,
                   feedline_message*) {
      std::memset(out, 'x', bytes);
      *got = shelf.got;
      return int{FEEDLINE_OK};
    };
    part.list = [](void*, const char*, int, const feedline_listing* listing, feedline_message*) {
      shelf.list(*listing);
      return int{FEEDLINE_OK};
    };
    ASSERT_EQ(refusal({.storages = {part, storage_part("listless")}}), "");
  }
  void SetUp() override { shelf = {}; }
  static std::string list_error(storage::Depth depth = storage::Depth::kFolder) {
    const auto location = storage::open("faulty://folder/");
    const auto tree = location->storage->list_below(location->object, depth);
    return tree ? "" : tree.error().what;
  }
  static std::string read_error() {
    const auto location = storage::open("faulty://object");
    memory::ByteBuffer buffer;
    const auto bytes = location->storage->read_all(location->object, buffer, 1000);
    return bytes ? "" : bytes.error().what;
  }
};

TEST_F(FaultyStorage, CannotReadMoreOrLessThanItsObjects) {
  EXPECT_EQ(read_error(), "");
  shelf.got = 1000;
  EXPECT_NE(read_error().find("read() reports 1000 bytes, but 11 were requested"), std::string::npos);
  shelf.got = 4;
  EXPECT_NE(read_error(), "");
  shelf.got = 10;
  shelf.object.bytes = ~std::uint64_t{0};
  EXPECT_NE(read_error(), "");
}

TEST_F(FaultyStorage, CannotListAnythingButRelativePaths) {
  shelf.list = [](const feedline_listing& listing) {
    const feedline_object object{1, 1, 0};
    listing.add(listing.host, "a", &object);
  };
  EXPECT_EQ(list_error(), "");
  for (const auto list : {+[](const feedline_listing& listing) { listing.add(listing.host, nullptr, &shelf.object); },
                          +[](const feedline_listing& listing) { listing.add(listing.host, "a", nullptr); },
                          +[](const feedline_listing& listing) { listing.add(listing.host, "", &shelf.object); },
                          +[](const feedline_listing& listing) { listing.add(listing.host, "/a", &shelf.object); },
                          +[](const feedline_listing& listing) { listing.add(listing.host, "a/", &shelf.object); },
                          +[](const feedline_listing& listing) { listing.add(listing.host, "a/b", &shelf.object); }}) {
    shelf.list = list;
    EXPECT_NE(list_error().find("list() added"), std::string::npos);
  }
  shelf.list = [](const feedline_listing& listing) {
    const feedline_object folder{0, 0, 1};
    listing.add(listing.host, "a", &folder);
  };
  EXPECT_NE(list_error(storage::Depth::kAll).find("to a recursive listing"), std::string::npos);
}

TEST_F(FaultyStorage, MayHaveNoListings) {
  const auto location = storage::open("listless://folder/");
  const auto tree = location->storage->list_below(location->object, storage::Depth::kFolder);
  ASSERT_FALSE(tree);
  EXPECT_NE(tree.error().what.find("cannot list folders"), std::string::npos);
}

// ---- operations ----

struct Sizes {
  int width = 3, height = 2;
  int code = FEEDLINE_OK;
  bool throws = false;
  std::uint64_t random = 0;
};
Sizes sizes;

class FaultyOperation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const feedline_argument kArguments[] = {{"needed", std::nan("")}, {"optional", 2}};
    feedline_operation_v1 part = operation_part("faulty");
    part.arguments = kArguments, part.argument_count = 2;
    part.flags = FEEDLINE_OPERATION_IS_RANDOM;
    part.check = [](void*, const double* arguments, feedline_message* message) {
      return arguments[1] > 0 ? int{FEEDLINE_OK} : failed(message, FEEDLINE_BAD_DATA, "optional must be positive");
    };
    part.output_size = [](void*, const double*, int, int, int* width, int* height, feedline_message*) {
      *width = sizes.width, *height = sizes.height;
      return int{FEEDLINE_OK};
    };
    part.run = [](void*, const double*, std::uint64_t random, const feedline_pixels* in, const feedline_pixels* out,
                  feedline_message* message) {
      if (sizes.throws) throw 1;
      if (sizes.code != FEEDLINE_OK) return failed(message, sizes.code, "no pixels");
      EXPECT_NE(in->data, out->data);
      EXPECT_EQ(in->channels, out->channels);
      sizes.random = random;
      for (int y = 0; y < out->height; ++y) std::memset(out->data + y * out->stride, 7, out->width * out->channels);
      return int{FEEDLINE_OK};
    };
    feedline_operation_v1 in_place = operation_part("in_place");
    in_place.run = [](void*, const double*, std::uint64_t, const feedline_pixels* in, const feedline_pixels* out,
                      feedline_message*) {
      EXPECT_EQ(in->data, out->data);
      for (int y = 0; y < out->height; ++y)
        for (int x = 0; x < out->width * out->channels; ++x) out->data[y * out->stride + x] ^= 0xFF;
      return int{FEEDLINE_OK};
    };
    ASSERT_EQ(refusal({.operations = {part, in_place}}), "");
  }
  void SetUp() override { sizes = {}; }

  // of an image of 7 x 5
  static const std::vector<std::uint8_t>& pixels() {
    static const std::vector<std::uint8_t> all = [] {
      std::vector<std::uint8_t> made(7 * 5 * 3);
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::uint8_t>(i * 7);
      return made;
    }();
    return all;
  }
  using Names = std::vector<std::string>;
  static Result<Operation> made(const std::string& name, Names names = {"needed"}, std::vector<double> numbers = {1}) {
    return make_operation("apply", {{"operation", name}, {"names", names}, {"values", numbers}});
  }
  static Result<std::vector<std::uint8_t>> run(const Operation& operation, Size fixed = {2, 3},
                                               std::uint64_t sample = 3) {
    FEEDLINE_TRY(const auto chain, transform::Chain::compile(std::vector{operation, Operation(op::CenterCrop{fixed})},
                                                             {}, Layout::kNhwc));
    transform::Drawing drawing;
    transform::Workspace workspace;
    FEEDLINE_CHECK_OK(chain->draw({5, 7}, {.seed = 1, .epoch = 2, .sample = sample}, drawing));
    std::vector<std::uint8_t> out(chain->output().bytes());
    FEEDLINE_CHECK_OK(chain->apply(drawing, {pixels().data(), 7, 5, 3, 21}, workspace,
                                   {reinterpret_cast<std::byte*>(out.data()), chain->output()}));
    return out;
  }
};

TEST_F(FaultyOperation, FillsAnImageOfItsSize) {
  const auto result = run(*made("faulty"));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(*result, std::vector<std::uint8_t>(2 * 3 * 3, 7));
  const auto first = sizes.random;
  ASSERT_TRUE(run(*made("faulty")));
  EXPECT_EQ(sizes.random, first);
  ASSERT_TRUE(run(*made("faulty"), {2, 3}, 4));
  EXPECT_NE(sizes.random, first);
  const auto inverted = run(*made("in_place", {}, {}), {5, 7});
  ASSERT_TRUE(inverted) << inverted.error().message();
  for (std::size_t i = 0; i < inverted->size(); ++i) ASSERT_EQ((*inverted)[i], 0xFF ^ pixels()[i]);
}

TEST_F(FaultyOperation, CannotMakeAnImpossibleSize) {
  for (const auto& [width, height] : {std::pair{0, 2}, {3, -1}, {std::numeric_limits<int>::max(), 2'000'000}}) {
    sizes.width = width, sizes.height = height;
    const auto result = run(*made("faulty"));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kData) << result.error().what;
  }
}

TEST_F(FaultyOperation, FailsWithTheCodeAndTheMessage) {
  sizes.code = FEEDLINE_BAD_DATA;
  auto result = run(*made("faulty"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kData);
  EXPECT_NE(result.error().what.find("the plugin's operation 'faulty': no pixels"), std::string::npos);
  sizes.throws = true;
  result = run(*made("faulty"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kData);
  EXPECT_NE(result.error().what.find("the plugin threw an exception"), std::string::npos);
}

TEST_F(FaultyOperation, ChecksItsArguments) {
  const auto error = [](const Result<Operation>& operation) {
    EXPECT_FALSE(operation);
    return operation ? "" : operation.error().what;
  };
  EXPECT_NE(error(made("faulty", {}, {})).find("give the argument 'needed' as a finite number"), std::string::npos);
  EXPECT_NE(error(made("faulty", {"needed", "optional"}, {1, 0})).find("optional must be positive"), std::string::npos);
  EXPECT_NE(error(made("faulty", {"needed", "other"}, {1, 0})).find("its arguments are: needed, optional"),
            std::string::npos);
  EXPECT_NE(error(made("missing", {}, {})).find("'missing' is not registered"), std::string::npos);
}

// ---- threads ----

// Threads look up parts and read while plugins are added.
TEST(PluginThreads, ReadWhilePluginsAreAdded) {
  ASSERT_EQ(refusal({.formats = {format_part("threads")}, .codecs = {codec_part("threads", "THREADS")}}), "");
  storage::TemporaryFolder folder;
  const std::string path = folder.write("data", "abc");
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!ends) {
        const auto format = format::open(path, {.format = "threads"});
        ASSERT_TRUE(format) << format.error().message();
        const std::string file = "THREADS";
        decode::ImageDecoder decoder;
        ASSERT_TRUE(decoder.open(std::as_bytes(std::span(file))));
        memory::PixelBuffer out;
        ASSERT_TRUE(decoder.decode({0, 0, 2, 2}, ColorMode::kRgb, out));
        EXPECT_FALSE(storage::open("threads0x://a"));
      }
    });
  static std::vector<std::string> names;  // plugins keep their names
  for (int i = 0; i < 20; ++i) names.push_back("threads" + std::to_string(i));
  for (const std::string& name : names)
    EXPECT_EQ(refusal({.storages = {storage_part(name.c_str())},
                       .formats = {format_part(name.c_str())},
                       .operations = {operation_part(name.c_str())}}),
              "");
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace feedline::plugin
