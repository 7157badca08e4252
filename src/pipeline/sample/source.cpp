// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/source.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <utility>

#include "base/random.h"
#include "base/test_conditions.h"
#include "cache/node/cached_storage.h"
#include "decode/decoder.h"
#include "format/arrays/array_format.h"
#include "format/arrays/array_records.h"
#include "format/combined/joined_format.h"
#include "format/episodes/episode_format.h"
#include "format/folder/given_files.h"
#include "format/format.h"
#include "format/label_names.h"
#include "format/rows/rows_format.h"
#include "format/rows/table_cells.h"
#include "format/sources/source_list.h"
#include "format/tokens/token_format.h"
#include "format/volumes/volume_format.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/foreground.h"
#include "pipeline/media/audio_headers.h"
#include "pipeline/media/video_indexes.h"
#include "pipeline/sample/image_checkpoints.h"
#include "plan/mixture.h"
#include "storage/manifest_storage.h"
#include "storage/pipe/pipe_storage.h"
#include "storage/registry.h"
#include "storage/slow_storage.h"

namespace feedline::pipeline {
namespace {

// Returns the storage, slowed down if a test requests it.
std::shared_ptr<const storage::Storage> under_test_conditions(std::shared_ptr<const storage::Storage> storage) {
  const std::chrono::microseconds latency = base::test_conditions().read_latency;
  if (latency.count() <= 0) return storage;
  return std::make_shared<storage::SlowStorage>(std::move(storage), storage::SlowReads{.latency = latency});
}

format::OpenOptions format_options(const std::string& source, const OpenOptions& options,
                                   std::shared_ptr<const storage::Storage> storage) {
  const bool is_command = source.starts_with(storage::kPipe);  // do not run the command: assume that it writes a tar
  return {is_command && options.format.empty() ? "tar" : options.format,
          options.fields,
          options.index_directory,
          std::move(storage),
          std::make_shared<cache::Notes>(),
          options.missing,
          options.listing_age,
          options.annotations,
          options.documents};
}

Result<format::LocatedSource> locate(const std::string& source, const OpenOptions& options) {
  return options.allow_commands ? format::locate_allowing_commands(source) : format::locate(source);
}

// Adds the checksums and hedged requests that the user has enabled.
Result<std::shared_ptr<const storage::Storage>> read_so(std::shared_ptr<const storage::Storage> storage,
                                                        const OpenOptions& options) {
  const storage::Reading how{.compares_sums = options.verify == Verify::kHeaders, .hedges = options.hedge};
  if (how.compares_sums || how.hedges)
    if (auto other = storage->reading(how)) storage = std::move(other);
  if (options.verify != Verify::kManifest) return storage;
  std::vector<storage::ListedObject> objects;
  for (const ListedShard& shard : options.listed_shards) {
    const auto sum = storage::sum_of_hex(storage::SumKind::kSha256, shard.sha256);
    if (!sum) return config_error("open: the manifest's checksum of '" + shard.name + "' is not a SHA-256");
    objects.push_back({shard.name, shard.bytes, *sum});
  }
  return std::make_shared<storage::ManifestStorage>(std::move(storage), objects);
}

// Adds a cache or test conditions.
Result<std::shared_ptr<const storage::Storage>> wrapped(std::shared_ptr<const storage::Storage> storage,
                                                        const OpenOptions& options) {
  FEEDLINE_TRY(storage, read_so(std::move(storage), options));
  return cache::through_cache(under_test_conditions(std::move(storage)), options.cache_directory, options.cache_limit);
}

bool is_image(const format::FieldDescription& field) { return field.kind == format::FieldKind::kImage; }
bool is_audio(const format::FieldDescription& field) { return field.kind == format::FieldKind::kAudio; }
bool is_video(const format::FieldDescription& field) { return field.kind == format::FieldKind::kVideo; }

}  // namespace

void SeenDepth::note(std::uint8_t depth) {
  std::uint8_t before = deepest_.load(std::memory_order_relaxed);
  while (before < depth && !deepest_.compare_exchange_weak(before, depth, std::memory_order_relaxed)) continue;
}

std::string SeenDepth::take() {
  const auto deepest = static_cast<decode::Depth>(deepest_.load(std::memory_order_relaxed));
  if (deepest == decode::Depth::k8Bits || is_taken_.load(std::memory_order_relaxed)) return {};
  return is_taken_.exchange(true, std::memory_order_relaxed) ? std::string() : std::string(decode::name_of(deepest));
}

Result<Source> Source::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto located, locate(source, options));
  FEEDLINE_TRY(auto storage, read_so(located.storage, options));
  FEEDLINE_TRY(storage, cache::through_cache(under_test_conditions(std::move(storage)), options.cache_directory,
                                             options.cache_limit));
  const format::OpenOptions asked = format_options(source, options, std::move(storage));
  FEEDLINE_TRY(auto opened, format::open(located.source, asked));
  // a URL may contain a password or a signature
  const bool is_local = located.storage == storage::local_storage();
  Source made(is_local ? source : located.source, std::move(opened));
  made.notes_ = asked.notes->lines();
  if (options.checkpoints && std::ranges::any_of(made.format_->fields(), is_image)) {
    made.checkpoints_ = ImageCheckpoints::of_source(*located.storage, located.source, options.index_directory);
    made.checkpoints_->allow_ranges(options.verify == Verify::kNone);  // checksums are of whole objects
  }
  made.find_media_indexes(*located.storage, located.source, options.index_directory);
  if (std::string note = located.storage->note(); !note.empty()) made.notes_.push_back(std::move(note));
  return made;
}

void Source::find_media_indexes(const storage::Storage& storage, const std::string& source,
                                const std::string& directory) {
  if (std::ranges::any_of(format_->fields(), is_video)) videos_ = VideoIndexes::of_source(storage, source, directory);
  if (std::ranges::any_of(format_->fields(), is_audio))
    audio_headers_ = AudioHeaders::of_source(storage, source, directory);
}

Result<Source> Source::arrays(std::vector<NamedArray> arrays) {
  if (std::ranges::all_of(arrays, [](const NamedArray& array) { return array.kind == "array"; })) {
    FEEDLINE_TRY(auto opened, format::ArrayFormat::make(std::move(arrays)));
    return Source("arrays", std::move(opened));
  }
  FEEDLINE_TRY(auto opened, format::ArrayRecords::make(std::move(arrays)));
  return Source("arrays", std::move(opened));
}

Result<Source> Source::rows(RowOptions options) {
  std::string name = options.source;
  const auto wrap = [given = options.options](auto storage) { return wrapped(std::move(storage), given); };
  FEEDLINE_TRY(auto opened, format::RowsFormat::open(std::move(options), wrap));
  Source made(std::move(name), std::move(opened));
  if (std::ranges::any_of(made.format_->fields(), is_image)) made.checkpoints_ = ImageCheckpoints::in_memory();
  made.find_media_indexes(*storage::local_storage(), made.name_, {});
  return made;
}

Result<Source> Source::episodes(EpisodeOptions options, const std::vector<Source>& images) {
  std::string name = options.source;
  std::vector<std::shared_ptr<const format::RecordFormat>> formats;
  for (const Source& one : images) {
    formats.push_back(format::records_of(one.format()));
    if (formats.back() == nullptr) return config_error("the samples of '" + one.name() + "' are not images");
  }
  const auto wrap = [given = options.options](auto storage) { return wrapped(std::move(storage), given); };
  FEEDLINE_TRY(auto opened, format::EpisodeFormat::open(std::move(options), std::move(formats), wrap));
  Source made(std::move(name), std::move(opened));
  made.find_media_indexes(*storage::local_storage(), made.name_, {});
  return made;
}

Result<Source> Source::tokens(const std::vector<TokenFile>& files, const TokenOptions& options) {
  std::vector<TokenFile> objects = files;
  for (TokenFile& file : objects) {
    FEEDLINE_TRY(auto located, storage::open(file.path));
    if (located.storage->is_remote())
      return config_error("tokens: '" + located.object + "' is not on this machine, but token files must be local: " +
                          "copy it to this machine first");
    file.path = std::move(located.object);
  }
  FEEDLINE_TRY(auto opened, format::open_tokens(objects, options, storage::local_storage()));
  std::string name;
  for (const TokenFile& file : files) name += (name.empty() ? "" : "::") + file.path;
  return Source(std::move(name), std::move(opened));
}

Result<Source> Source::volumes(VolumeOptions options) {
  if (options.samples.empty() || options.samples.front().empty())
    return config_error("volumes: at least one volume is needed");
  std::vector<std::vector<format::VolumeSource>> samples;
  std::map<const storage::Storage*, std::shared_ptr<const storage::Storage>> wrapped;
  for (std::vector<StoredVolume>& sample : options.samples) {
    auto& sources = samples.emplace_back();
    for (StoredVolume& volume : sample) {
      FEEDLINE_TRY(auto located, storage::open(volume.path));
      auto& storage = wrapped[located.storage.get()];
      if (!storage) {
        FEEDLINE_TRY(storage, cache::through_cache(under_test_conditions(located.storage), options.cache_directory,
                                                   options.cache_limit));
      }
      sources.push_back({storage, std::move(located.object), std::move(volume.array), std::move(volume.chunks)});
    }
  }
  const format::VolumeSource first = samples.front().front();
  auto notes = std::make_shared<cache::Notes>();
  auto opened = format::open_volumes(options.name, options.fields, std::move(samples), notes);
  if (!opened) {
    opened.error().where.dataset = options.name;
    return std::unexpected(std::move(opened).error());
  }
  Source made(std::move(options.name), std::move(*opened));
  made.notes_ = notes->lines();
  made.foreground_ = std::make_shared<ForegroundIndex>(*first.storage, first.path, options.index_directory);
  return made;
}

Result<Source> Source::patches(const PatchOptions& options) const {
  if (is_mixture()) return config_error("the dataset is a mixture; crop patches of its datasets and mix those");
  const auto records = format::records_of(format_);
  if (!records) return config_error("the samples of \"" + name_ + "\" are arrays, not volumes");
  Source made = *this;
  FEEDLINE_TRY(made.format_, format::patches_of(records, options));
  return made;
}

Result<Source> Source::mix(const std::vector<Source>& parts, const MixOptions& options) {
  std::string name;
  std::vector<std::shared_ptr<const format::Format>> formats;
  std::vector<std::string> names;
  std::vector<std::uint64_t> sizes;
  std::vector<std::shared_ptr<ImageCheckpoints>> checkpoints;
  for (const Source& part : parts) {
    checkpoints.push_back(part.checkpoints_);
    names.push_back(part.name());
    name += (name.empty() ? "mix(" : ", ") + part.name();
    formats.push_back(part.format_);
    sizes.push_back(part.size());
  }
  FEEDLINE_TRY(auto joined, format::join(std::move(formats), names));
  FEEDLINE_TRY(auto mixture, plan::make_mixture(sizes, options));
  Source mixed(name + ")", std::move(joined), std::move(mixture));
  mixed.checkpoints_ = ImageCheckpoints::joined(checkpoints);
  for (const Source& part : parts)  // indexes are found by the video, whatever its source
    if (!mixed.videos_) mixed.videos_ = part.videos_;
  for (const Source& part : parts)
    if (!mixed.foreground_) mixed.foreground_ = part.foreground_;
  return mixed;
}

std::uint64_t Source::size() const { return format_->size(); }
std::string_view Source::format_name() const { return format_->name(); }
const std::vector<std::string>& Source::classes() const { return format_->classes(); }
std::vector<std::uint64_t> Source::shard_ends() const { return format_->shard_ends(); }
std::vector<std::uint64_t> Source::block_ends() const { return format_->shuffle_blocks().ends; }
std::string_view Source::block_name() const { return format_->shuffle_blocks().name; }
std::vector<UnopenedColumn> Source::unopened() const { return format_->unopened(); }
std::vector<FieldRemark> Source::remarks() const { return format_->remarks(); }
std::string Source::summary() const {
  std::string text = format_->summary();
  const auto add = [&text](const std::string& line) { text += (text.empty() ? "" : "\n") + line; };
  for (const FieldRemark& remark : remarks()) add("field '" + remark.field + "': " + remark.text);
  if (const auto left = unopened(); !left.empty()) add("not opened: " + format::names_of(left));
  for (const std::string& note : notes_) add(note);
  return text;
}
std::string Source::key(std::uint64_t sample) const {
  return sample < size() ? format_->where(sample).key : std::string();
}
Result<Inspection> Source::inspect() const { return format_->inspect(); }
std::uint64_t Source::positions() const { return mixture_ ? mixture_->samples : size(); }

std::uint64_t Source::fingerprint() const {
  std::uint64_t value = format_->fingerprint();
  if (!mixture_) return value;
  for (const plan::Part& part : mixture_->parts) value = base::mix64(value + std::bit_cast<std::uint64_t>(part.weight));
  return base::mix64(value + mixture_->samples);
}

Result<void> Source::check_index(std::uint64_t sample) const {
  if (sample < size()) return {};
  return config_error("sample " + std::to_string(sample) + " is out of range: the dataset has " +
                      std::to_string(size()));
}

Result<SampleFiles> Source::files(std::uint64_t sample) const {
  FEEDLINE_CHECK_OK(check_index(sample));
  const auto records = format::records_of(format_);
  auto files = records ? records->files(sample) : config_error("the samples are arrays, which are not stored in files");
  if (!files) return std::unexpected(with_location(std::move(files).error(), *format_, name_, sample));
  return files;
}

Result<SampleFileSizes> Source::file_sizes(std::uint64_t sample) const {
  FEEDLINE_CHECK_OK(check_index(sample));
  const auto records = format::records_of(format_);
  auto sizes =
      records ? records->file_sizes(sample) : config_error("the samples are arrays, which are not stored in files");
  if (!sizes) return std::unexpected(with_location(std::move(sizes).error(), *format_, name_, sample));
  return sizes;
}

Result<std::vector<std::byte>> Source::encoded(std::uint64_t sample) const {
  FEEDLINE_CHECK_OK(check_index(sample));
  const auto records = format::records_of(format_);
  if (!records) return config_error("the dataset has no image field");
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  if (auto read = records->read(sample, record); !read)
    return std::unexpected(with_location(std::move(read).error(), *format_, name_, sample));
  const auto& fields = format_->fields();
  const auto image = std::ranges::find_if(fields, is_image);
  if (image == fields.end()) return config_error("the dataset has no image field");
  const memory::Record::Field& field = record.fields[static_cast<std::size_t>(image - fields.begin())];
  if (field.pixels.data != nullptr)
    return config_error("encoded: the images of \"" + name_ + "\" are stored as pixels");
  return std::vector<std::byte>(field.bytes.begin(), field.bytes.end());
}

GivenSource::GivenSource(std::string name)
    : name_(std::move(name)),
      files_(std::make_shared<format::GivenFiles>(under_test_conditions(storage::local_storage()))),
      checkpoints_(ImageCheckpoints::in_memory()) {}
Source GivenSource::source() const {
  Source made(name_, files_);
  made.checkpoints_ = checkpoints_;
  return made;
}
std::uint64_t GivenSource::add(std::vector<GivenImage> files) const {
  std::vector<format::GivenFile> given;
  given.reserve(files.size());
  for (GivenImage& file : files) given.push_back({std::move(file.path), file.bytes});
  return files_->add(std::move(given));
}
void GivenSource::keep(std::shared_ptr<const void> owner) const { files_->keep(std::move(owner)); }
void GivenSource::forget(std::uint64_t first) const { files_->forget(first); }
void GivenSource::forget_all() const { files_->forget_all(); }

std::span<const std::string_view> label_names() { return format::kLabelNames; }

Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const auto located, locate(source, options));
  return format::inspect(located.source, format_options(source, options, under_test_conditions(located.storage)));
}

Result<TableCells> read_table(const std::string& source) {
  FEEDLINE_TRY(const auto located, format::locate(source));
  auto cells = format::read_table_cells(under_test_conditions(located.storage), located.source);
  if (!cells) cells.error().where.dataset = source;
  return cells;
}

Error with_location(Error error, const format::Format& format, const std::string& dataset, std::uint64_t sample) {
  const Where where = format.where(sample);
  error.where.dataset = dataset;
  if (!error.where.record) error.where.label = where.label;  // otherwise the format already names the row
  error.where.record = where.record.value_or(sample);        // in the opened dataset, also for a subset of it
  if (error.where.shard.empty()) error.where.shard = where.shard;
  if (error.where.key.empty()) error.where.key = where.key;
  if (!error.where.offset) error.where.offset = where.offset;
  return error;
}

}  // namespace feedline::pipeline
